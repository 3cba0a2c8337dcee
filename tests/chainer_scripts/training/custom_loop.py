"""A training loop of one's own, with concat_examples and a custom scheduler."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import optimizers, serializers
from chainer.dataset import concat_examples


class MyNetwork(chainer.Chain):

    def __init__(self, n_mid_units=50, n_out=3):
        super(MyNetwork, self).__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, n_mid_units)
            self.l2 = L.Linear(n_mid_units, n_out)

    def __call__(self, x):
        h = F.relu(self.l1(x))
        return self.l2(F.dropout(h, .2))


np.random.seed(0)
rng = np.random.RandomState(0)
centres = np.array([[0, 2], [2, -1], [-2, -1]])
labels = rng.randint(0, 3, 300).astype(np.int32)
points = (centres[labels] + .5 * rng.randn(300, 2)).astype(np.float32)
dataset = list(zip(points, labels))
train, test = chainer.datasets.split_dataset(dataset, 240)
train_iter = chainer.iterators.SerialIterator(train, 32)
test_iter = chainer.iterators.SerialIterator(test, 32, False, False)

model = MyNetwork()
optimizer = optimizers.MomentumSGD(lr=0.05, momentum=0.9)
optimizer.setup(model)
optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-4))

while train_iter.epoch < 10:
    x, t = concat_examples(train_iter.next())
    y = model(x)
    loss = F.softmax_cross_entropy(y, t)
    model.cleargrads()
    loss.backward()
    optimizer.update()

    if train_iter.is_new_epoch:
        optimizer.lr *= 0.9
        accuracies = []
        while True:
            x, t = concat_examples(test_iter.next())
            with chainer.using_config('train', False), \
                    chainer.using_config('enable_backprop', False):
                accuracy = F.accuracy(model(x), t)
            accuracies.append(float(accuracy.data))
            if test_iter.is_new_epoch:
                test_iter.reset()
                break

serializers.save_npz('my_network.npz', model)
infer = MyNetwork()
serializers.load_npz('my_network.npz', infer)
with chainer.no_backprop_mode(), chainer.using_config('train', False):
    assert (infer(points[:5]).array == model(points[:5]).array).all()
print('accuracy {:.3f}'.format(np.mean(accuracies)))
