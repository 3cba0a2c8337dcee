"""A custom link hook, and spectral normalization of a discriminator."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer.link_hooks import SpectralNormalization, TimerHook


class Shapes(chainer.LinkHook):

    name = 'Shapes'

    def __init__(self):
        self.found = []

    def forward_postprocess(self, args):
        self.found.append((type(args.link).__name__, args.out.shape))


class Discriminator(chainer.Chain):

    def __init__(self):
        super(Discriminator, self).__init__()
        with self.init_scope():
            self.c0 = L.Convolution2D(1, 4, 3, 2, 1).add_hook(
                SpectralNormalization())
            self.l1 = L.Linear(64, 1).add_hook(SpectralNormalization())

    def forward(self, x):
        return self.l1(F.leaky_relu(self.c0(x)))


def main():
    np.random.seed(0)
    model = Discriminator()
    optimizer = chainer.optimizers.Adam(0.01).setup(model)
    x = np.random.rand(8, 1, 8, 8).astype('f')
    shapes = Shapes()
    with shapes, TimerHook() as timer:
        for _ in range(5):
            optimizer.update(lambda: F.sum(F.softplus(-model(x))) / len(x))
    assert shapes.found[:3] == [
        ('Convolution2D', (8, 4, 4, 4)), ('Linear', (8, 1)),
        ('Discriminator', (8, 1))]
    assert timer.summary()['Linear']['occurrence'] == 5
    with chainer.using_config('train', False):
        model(x)
    norms = []
    for link in (model.c0, model.l1):
        hook = link.local_link_hooks['SpectralNormalization']
        W = hook.normalize_weight(link).array
        norms.append(np.linalg.svd(W.reshape(len(W), -1))[1][0])
    print('norms near 1: %s' % all(0.7 < n < 1.4 for n in norms))


if __name__ == '__main__':
    main()
