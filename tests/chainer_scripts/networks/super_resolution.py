"""Images enlarged by a deconvolution, from files with a mean image."""
import os

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import training
from chainer.training import extensions


class PreprocessedDataset(chainer.dataset.DatasetMixin):

    def __init__(self, images, mean, crop_size, random=True):
        self.base = chainer.datasets.TupleDataset(images)
        self.mean = mean.astype(np.float32)
        self.crop_size = crop_size
        self.random = random

    def __len__(self):
        return len(self.base)

    def get_example(self, i):
        image, = self.base[i]
        _, h, w = image.shape
        top = left = (h - self.crop_size) // 2
        if self.random and np.random.randint(2):
            image = image[:, :, ::-1]
        bottom, right = top + self.crop_size, left + self.crop_size
        image = (image - self.mean)[:, top:bottom, left:right] / 255
        return image[:, ::2, ::2].copy(), image


class Upscale(chainer.Chain):

    def __init__(self):
        super(Upscale, self).__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(1, 8, 3, pad=1)
            self.deconv = L.Deconvolution2D(8, 1, 4, stride=2, pad=1)

    def forward(self, x, t):
        y = self.deconv(F.relu(self.conv(x)))
        loss = F.mean_squared_error(y, t)
        chainer.report({'loss': loss}, self)
        return loss


def main():
    np.random.seed(0)
    grid = np.linspace(0, 3, 18, dtype='f')
    phases = np.random.rand(32, 2).astype('f')
    images = np.array([
        127 * (1 + np.sin(grid + a)[:, None] * np.cos(grid + b)[None])
        for a, b in 6 * phases], 'f')[:, None]
    np.save('mean.npy', images.mean(0))
    mean = np.load('mean.npy')
    train = PreprocessedDataset(images[:24], mean, 16)
    val = PreprocessedDataset(images[24:], mean, 16, False)
    train_iter = chainer.iterators.MultithreadIterator(train, 8, n_threads=2)
    val_iter = chainer.iterators.SerialIterator(
        val, 8, repeat=False, shuffle=False)
    model = Upscale()
    optimizer = chainer.optimizers.MomentumSGD(lr=0.1)
    optimizer.setup(model)
    updater = training.updaters.StandardUpdater(train_iter, optimizer)
    trainer = training.Trainer(updater, (20, 'epoch'), out='result')
    trainer.extend(extensions.Evaluator(val_iter, model))
    trainer.extend(extensions.ExponentialShift('lr', 0.9), trigger=(5, 'epoch'))
    trainer.extend(extensions.snapshot_object(
        model, 'model_iter_{.updater.iteration}'), trigger=(10, 'epoch'))
    log = extensions.LogReport()
    trainer.extend(log)
    trainer.run()
    assert os.path.exists('result/model_iter_60')
    first, last = (log.log[i]['validation/main/loss'] for i in (0, -1))
    print('loss falls: %s' % (last < 0.5 * first))


if __name__ == '__main__':
    main()
