"""ParallelUpdater: a batch split over two copies of the model."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import training
from chainer.training import extensions
from sklearn.datasets import load_digits


class MLP(chainer.Chain):

    def __init__(self):
        super(MLP, self).__init__()
        with self.init_scope():
            self.l1 = L.Linear(64, 40)
            self.l2 = L.Linear(40, 10)

    def __call__(self, x):
        return self.l2(F.relu(self.l1(x)))


np.random.seed(0)
x, t = load_digits(return_X_y=True)
dataset = chainer.datasets.TupleDataset(
    (x / 16).astype('f'), t.astype('i'))
train, test = chainer.datasets.split_dataset_random(dataset, 1500)
model = L.Classifier(MLP())
optimizer = chainer.optimizers.Adam()
optimizer.setup(model)
updater = training.updaters.ParallelUpdater(
    chainer.iterators.SerialIterator(train, 100), optimizer,
    devices={'main': -1, 'second': -1})
trainer = training.Trainer(updater, (30, 'epoch'), out='result')
trainer.extend(extensions.Evaluator(
    chainer.iterators.SerialIterator(test, 100, False, False), model))
log = extensions.LogReport()
trainer.extend(log)
trainer.run()
assert 'second/loss' in log.log[0]
print('accuracy {:.3f}'.format(log.log[-1]['validation/main/accuracy']))
