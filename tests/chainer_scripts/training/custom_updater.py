"""An updater of one's own: two losses, two optimizers, a custom converter."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import training
from chainer.training import extensions


class Autoencoder(chainer.Chain):

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.encoder = L.Linear(8, 3)
            self.decoder = L.Linear(3, 8)

    def __call__(self, x):
        return self.decoder(F.tanh(self.encoder(x)))


class SparseUpdater(training.updaters.StandardUpdater):

    def update_core(self):
        optimizer = self.get_optimizer('main')
        batch = self.get_iterator('main').next()
        x = self.converter(batch, self.device)
        model = optimizer.target
        loss = F.mean_squared_error(model(x), x)
        penalty = 1e-3 * F.sum(abs(model.encoder.W))
        chainer.report({'loss': loss, 'penalty': penalty}, model)
        model.cleargrads()
        (loss + penalty).backward()
        loss.unchain_backward()
        optimizer.update()


@chainer.dataset.converter()
def to_float(batch, device):
    return device.send(np.stack(batch).astype(np.float32))


np.random.seed(0)
data = np.random.randn(200, 3).dot(np.random.randn(3, 8)) / 4
model = Autoencoder()
optimizer = chainer.optimizers.Adam(0.01).setup(model)
iterator = chainer.iterators.SerialIterator(data, 20)
updater = SparseUpdater(iterator, optimizer, converter=to_float, device='@numpy')
trainer = training.Trainer(updater, (30, 'epoch'), out='result')
log = extensions.LogReport()
trainer.extend(log)
trainer.extend(extensions.observe_lr(), trigger=(1, 'iteration'))
trainer.extend(extensions.FailOnNonNumber())
trainer.run()
print('loss {:.3f} -> {:.3f}'.format(
    log.log[0]['main/loss'], log.log[-1]['main/loss']))
assert log.log[-1]['main/loss'] < log.log[0]['main/loss'] / 5
assert 'main/penalty' in log.log[0]
