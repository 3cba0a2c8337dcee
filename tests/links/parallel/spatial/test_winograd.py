"""Sharded images in float32, whose shards are convolved by Winograd's algorithm."""

import numpy as np
import pytest

import renga.links as L
from renga import _core
from renga.communicators import local
from renga.links.parallel import spatial as S
from tests.links.parallel.spatial.test_bfloat16 import (
    gradients,
    numbers,
    relative_errors,
)


@pytest.fixture(autouse=True)
def _winograd():
    _core.use_convolution_kernel("winograd")
    yield
    _core.use_convolution_kernel("auto")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("ksize, stride", [(3, 1), (3, 2), (4, 2)])
@pytest.mark.parametrize("kind", ["Convolution2D", "Deconvolution2D"])
def test_shards_are_those_of_the_serial_result(kind, ksize, stride, ranks):
    x, b = numbers(0, 2, 32, 17, 12), numbers(2, 64)
    shape = (64, 32) if kind == "Convolution2D" else (32, 64)
    W = np.random.default_rng(1).normal(0, 0.03, (*shape, ksize, ksize)).astype("f")
    outsize = () if kind == "Convolution2D" else (None,)
    options = (32, 64, ksize, stride, 1, False, *outsize, W, b)
    serial = getattr(L, kind)(*options)
    gy = numbers(3, *serial(x).shape)
    expected = gradients(serial, x, gy)

    def on_rank(comm):
        grid = S.SpatialGrid(comm, (comm.size,))
        link = getattr(S, "Spatial" + kind)(grid, *options)
        parts = (S.scatter_image(grid, a).array for a in (x, gy))
        return gradients(link, *parts, lambda a: S.gather_image(grid, a).array)

    for found in local.run(on_rank, ranks=ranks):
        assert max(relative_errors(found, expected)) < 3e-6
