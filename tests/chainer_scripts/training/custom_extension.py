"""Extensions and triggers of one's own."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import training
from chainer.training import extension, extensions, triggers


class Smoothed(extension.Extension):
    """Reports a running mean of the loss."""

    trigger = 1, 'iteration'
    priority = extension.PRIORITY_EDITOR

    def __init__(self, key, decay=0.9):
        self.key = key
        self.decay = decay
        self.value = None

    def __call__(self, trainer):
        loss = float(trainer.observation[self.key].array)
        self.value = loss if self.value is None else (
            self.decay * self.value + (1 - self.decay) * loss)
        chainer.reporter.report({'smoothed': self.value})

    def serialize(self, serializer):
        self.value = serializer('value', self.value)


class PowersOfTwo(object):
    """Fires at iterations 1, 2, 4, 8 and so on."""

    def __call__(self, trainer):
        iteration = trainer.updater.iteration
        return iteration & (iteration - 1) == 0


np.random.seed(0)
x = np.random.randn(128, 3).astype(np.float32)
t = x.dot(np.array([[1], [-2], [.5]], np.float32))
model = L.Classifier(L.Linear(3, 1), lossfun=F.mean_squared_error)
model.compute_accuracy = False
optimizer = chainer.optimizers.SGD(0.05).setup(model)
iterator = chainer.iterators.SerialIterator(
    chainer.datasets.TupleDataset(x, t), 32)
updater = training.updaters.StandardUpdater(iterator, optimizer)
stop = triggers.EarlyStoppingTrigger(
    monitor='main/loss', check_trigger=(1, 'epoch'), patience=2,
    max_trigger=(40, 'epoch'))
trainer = training.Trainer(updater, stop, out='result')
fired = []
trainer.extend(Smoothed('main/loss'))
trainer.extend(lambda t: fired.append(t.updater.iteration),
               trigger=PowersOfTwo(), name='powers')
trainer.extend(extensions.LogReport(trigger=(1, 'epoch')))
trainer.extend(
    extensions.ExponentialShift('lr', 0.5),
    trigger=triggers.ManualScheduleTrigger([5, 10], 'epoch'))
trainer.extend(extensions.snapshot_object(model, 'best.npz'),
               trigger=triggers.MinValueTrigger('main/loss'))


@training.make_extension(trigger=(2, 'epoch'), default_name='hello')
def hello(trainer):
    hello.count = getattr(hello, 'count', 0) + 1


trainer.extend(hello)
trainer.run()
log = trainer.get_extension('LogReport').log
assert fired[:5] == [1, 2, 4, 8, 16], fired
assert log[-1]['smoothed'] < log[0]['smoothed']
assert hello.count == updater.epoch // 2
print('loss below 0.01: {}'.format(log[-1]['main/loss'] < 0.01))
