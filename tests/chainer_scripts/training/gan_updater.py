"""A generator against a discriminator: several optimizers in one updater."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import training
from chainer.training import extensions


class Generator(chainer.Chain):

    def __init__(self, n_hidden=8):
        super(Generator, self).__init__()
        self.n_hidden = n_hidden
        with self.init_scope():
            w = chainer.initializers.Normal(0.1)
            self.l0 = L.Linear(n_hidden, 4 * 4 * 8, initialW=w)
            self.dc1 = L.Deconvolution2D(8, 4, 4, 2, 1, initialW=w)
            self.dc2 = L.Deconvolution2D(4, 1, 3, 1, 1, initialW=w)
            self.bn0 = L.BatchNormalization(4 * 4 * 8)
            self.bn1 = L.BatchNormalization(4)

    def make_hidden(self, batchsize):
        return np.random.uniform(
            -1, 1, (batchsize, self.n_hidden, 1, 1)).astype(np.float32)

    def forward(self, z):
        h = F.relu(self.bn0(self.l0(z)))
        h = F.reshape(h, (len(z), 8, 4, 4))
        h = F.relu(self.bn1(self.dc1(h)))
        return F.sigmoid(self.dc2(h))


class Discriminator(chainer.Chain):

    def __init__(self):
        super(Discriminator, self).__init__()
        w = chainer.initializers.Normal(0.1)
        with self.init_scope():
            self.c0 = L.Convolution2D(1, 8, 3, 1, 1, initialW=w)
            self.c1 = L.Convolution2D(8, 16, 4, 2, 1, initialW=w)
            self.bn1 = L.BatchNormalization(16, use_gamma=False)
            self.l4 = L.Linear(4 * 4 * 16, 1, initialW=w)

    def forward(self, x):
        h = F.leaky_relu(self.c0(x))
        h = F.leaky_relu(F.dropout(self.bn1(self.c1(h)), 0.2))
        return self.l4(h)


class DCGANUpdater(training.updaters.StandardUpdater):

    def __init__(self, *args, **kwargs):
        self.gen, self.dis = kwargs.pop('models')
        super(DCGANUpdater, self).__init__(*args, **kwargs)

    def loss_dis(self, dis, y_fake, y_real):
        batchsize = len(y_fake)
        loss = (F.sum(F.softplus(-y_real)) + F.sum(F.softplus(y_fake))) / batchsize
        chainer.report({'loss': loss}, dis)
        return loss

    def loss_gen(self, gen, y_fake):
        loss = F.sum(F.softplus(-y_fake)) / len(y_fake)
        chainer.report({'loss': loss}, gen)
        return loss

    def update_core(self):
        gen_optimizer = self.get_optimizer('gen')
        dis_optimizer = self.get_optimizer('dis')
        batch = self.get_iterator('main').next()
        x_real = chainer.Variable(self.converter(batch, self.device))
        gen, dis = self.gen, self.dis
        y_real = dis(x_real)
        z = chainer.Variable(gen.make_hidden(len(batch)))
        x_fake = gen(z)
        y_fake = dis(x_fake)
        dis_optimizer.update(self.loss_dis, dis, y_fake, y_real)
        gen_optimizer.update(self.loss_gen, gen, y_fake)


def make_optimizer(model, alpha=0.002, beta1=0.5):
    optimizer = chainer.optimizers.Adam(alpha=alpha, beta1=beta1)
    optimizer.setup(model)
    optimizer.add_hook(
        chainer.optimizer_hooks.WeightDecay(0.0001), 'hook_dec')
    return optimizer


np.random.seed(0)
from sklearn.datasets import load_digits  # noqa: E402

images = (load_digits().images[:400, None] / 16).astype(np.float32)
gen, dis = Generator(), Discriminator()
updater = DCGANUpdater(
    models=(gen, dis),
    iterator=chainer.iterators.SerialIterator(images, 50),
    optimizer={'gen': make_optimizer(gen), 'dis': make_optimizer(dis)})
trainer = training.Trainer(updater, (2, 'epoch'), out='result')
interval = (4, 'iteration')
trainer.extend(
    extensions.snapshot(filename='snapshot_iter_{.updater.iteration}.npz'),
    trigger=interval)
trainer.extend(extensions.snapshot_object(
    gen, 'gen_iter_{.updater.iteration}.npz'), trigger=interval)
log = extensions.LogReport(trigger=interval)
trainer.extend(log)


@chainer.training.make_extension(trigger=interval)
def sample(trainer):
    with chainer.using_config('train', False), chainer.no_backprop_mode():
        x = gen(gen.make_hidden(4))
    assert x.shape == (4, 1, 8, 8) and 0 <= x.array.min() <= x.array.max() <= 1


trainer.extend(sample)
trainer.run()
print(sorted(key for key in log.log[-1] if 'loss' in key))
