"""NStepLSTM on sequences of different lengths: which of two symbols comes more often."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


class Counter(chainer.Chain):

    def __init__(self, n_layers, n_vocab, n_units, n_out):
        super(Counter, self).__init__()
        with self.init_scope():
            self.embed = L.EmbedID(
                n_vocab, n_units, initialW=chainer.initializers.Uniform(.25))
            self.lstm = L.NStepLSTM(n_layers, n_units, n_units, 0.1)
            self.out = L.Linear(n_units, n_out)

    def forward(self, xs):
        x_len = [len(x) for x in xs]
        x_section = np.cumsum(x_len[:-1])
        ex = self.embed(F.concat(xs, axis=0))
        exs = F.split_axis(ex, x_section, 0)
        hy, cy, ys = self.lstm(None, None, exs)
        assert [len(y) for y in ys] == x_len
        return self.out(hy[-1])


np.random.seed(0)
chainer.config.train = True
model = Counter(2, 2, 16, 2)
optimizer = chainer.optimizers.Adam(0.01)
optimizer.setup(model)
optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(5))
accuracy = 0
for iteration in range(150):
    lengths = np.random.randint(3, 8, 32) * 2 + 1
    xs = [np.random.randint(0, 2, n).astype(np.int32) for n in lengths]
    ts = np.array([int(x.mean() > .5) for x in xs], np.int32)
    y = model(xs)
    loss = F.softmax_cross_entropy(y, ts)
    accuracy = .9 * accuracy + .1 * float(F.accuracy(y, ts).array)
    model.cleargrads()
    loss.backward()
    optimizer.update()
print('accuracy {:.3f}'.format(accuracy))
