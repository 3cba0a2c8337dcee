"""A chain with a static graph."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import static_graph


class MLP(chainer.Chain):

    def __init__(self, n_units, n_out):
        super(MLP, self).__init__()
        with self.init_scope():
            self.l1 = L.Linear(4, n_units)
            self.l2 = L.Linear(n_units, n_out)

    @static_graph
    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


def main():
    np.random.seed(0)
    x = np.random.randn(64, 4).astype('f')
    t = (x.sum(1) > 0).astype('i')
    model = L.Classifier(MLP(16, 2))
    optimizer = chainer.optimizers.Adam(0.05).setup(model)
    losses = []
    for _ in range(30):
        model.cleargrads()
        loss = model(x, t)
        loss.backward()
        optimizer.update()
        losses.append(float(loss.array))
    print('loss falls: %s' % (losses[-1] < 0.3 * losses[0]))


if __name__ == '__main__':
    main()
