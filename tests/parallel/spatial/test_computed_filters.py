"""Convolutions of sharded images by functions, with filters that are computed."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import parallelize

X = np.random.RandomState(0).normal(size=(2, 3, 7, 6))
BLUR = np.full((3, 1, 3, 3), 1 / 9)


def standardized(W):
    """Weight standardization (Qiao et al., 2019)."""
    d = W - F.mean(W, axis=(1, 2, 3), keepdims=True)
    return d / F.sqrt(F.mean(d * d, axis=(1, 2, 3), keepdims=True) + 1e-5)


FUNCTIONS = {
    "convolution_2d": lambda h, W, b: F.convolution_2d(h, standardized(W), b, pad=1),
    "of steps": lambda h, W, b: F.convolution_2d(h, W, b, stride=2, pad=1),
    "dilated": lambda h, W, b: F.dilated_convolution_2d(h, W, b, 1, 2, dilate=2),
    "convolution_nd": lambda h, W, b: F.convolution_nd(h, 2 * W, b, 1, 1, False, 1),
    "deconvolution_2d": lambda h, W, b: F.deconvolution_2d(h, W, b, 2, 1, (14, 12)),
    "deconvolution_nd": lambda h, W, b: F.deconvolution_nd(h, W * W, b, pad=1),
    "fixed filters": lambda h, W, b: (
        F.convolution_2d(h, BLUR, b, pad=1, groups=3) * W[0, 0, 0, 0]
    ),
    "depthwise": lambda h, W, b: F.depthwise_convolution_2d(h, W[:1], b, pad=1),
}
LINKS = {
    "DilatedConvolution2D": lambda: L.DilatedConvolution2D(3, 3, 3, 1, 2, dilate=2),
    "DepthwiseConvolution2D": lambda: L.DepthwiseConvolution2D(3, 2, 3, pad=1),
}


class Computed(renga.Chain):
    """A convolution, and what is made of its images and of other parameters."""

    def __init__(self, name):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(3, 3, 3, pad=1)
            self.last = LINKS[name]() if name in LINKS else None
            if self.last is None:
                self.W = renga.Parameter(0.0, (3, 3, 3, 3))
                self.b = renga.Parameter(0.0, 3)
        draw = np.random.RandomState(1).normal
        for _, param in sorted(self.namedparams()):
            param.array[...] = draw(size=param.shape)
        self.name = name

    def forward(self, x):
        h = self.conv(x)
        if self.last is not None:
            return self.last(h)
        return FUNCTIONS[self.name](h, self.W, self.b)


def results(model):
    model.cleargrads()
    y = model(X)
    F.sum(y**3).backward()
    return [y.array, *(p.grad for _, p in sorted(model.namedparams()))]


@pytest.mark.parametrize("name", [*FUNCTIONS, *LINKS])
@pytest.mark.parametrize("ranks", [2, 3])
def test_results_are_those_of_whole_images(name, ranks):
    def rank(comm):
        with renga.using_config("dtype", np.float64):
            expected = results(Computed(name))
            return expected, results(parallelize(Computed(name), comm, "spatial"))

    for expected, found in local.run(rank, ranks=ranks):
        for x, y in zip(found, expected):
            np.testing.assert_allclose(x, y, 1e-9, 1e-9)
