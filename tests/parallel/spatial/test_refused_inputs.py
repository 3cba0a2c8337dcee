"""Inputs that models for whole images refuse, on all ranks, as serial links do."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.parallel.parallelize import parallelize
from renga.utils.type_check import InvalidType

X = np.random.default_rng(9).normal(0, 1, (2, 3, 8, 6))


def refused(make, x, error, message, ranks=(2, 3)):
    """A call that raises the same error on all ranks."""

    def on_rank(comm):
        renga.config.dtype = np.float64
        net = parallelize(make(), comm, "spatial")
        with pytest.raises(error, match=message) as raised:
            net(x)
        return str(raised.value).split(" on rank")[0]

    for size in ranks:
        with renga.using_config("dtype", np.float64):
            assert len({text[:40] for text in local.run(on_rank, ranks=size)}) == 1


@pytest.mark.parametrize("dtype", "efi?O")
@pytest.mark.parametrize("kind", [L.Convolution2D, L.Deconvolution2D])
def test_dtypes_that_serial_convolutions_refuse(kind, dtype):
    def make():
        return renga.Sequential(kind(3, 2, 3))

    x = np.ones((2, 3, 8, 6)).astype(dtype)
    with renga.using_config("dtype", np.float64):
        with pytest.raises((InvalidType, TypeError)):
            make()(x)
    refused(make, x, (InvalidType, TypeError), None)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (3, 8, 6), (1, 2, 3, 8, 6)])
def test_images_with_other_axes(shape):
    def make():
        return renga.Sequential(L.Convolution2D(3, 2, 3))

    refused(make, np.ones(shape), InvalidType, None)


def test_normalization_of_single_pixels():
    def make():
        return renga.Sequential(L.BatchNormalization(axis=(0,)))

    refused(make, X, ValueError, "expected axis")


FROM_SHAPES = {
    "average_pooling": lambda h: F.average_pooling_2d(h, h.shape[2:]),
    "average_pooling_nd": lambda h: F.average_pooling_nd(h, h.shape[2:], stride=1),
    "max_pooling": lambda h: F.max_pooling_2d(h, ksize=h.shape[2:]),
    "resize": lambda h: F.resize_images(h, (h.shape[2] * 2, h.shape[3] * 2)),
}


@pytest.mark.parametrize("name", FROM_SHAPES)
@pytest.mark.parametrize("rows", [8, 7])
def test_extents_taken_from_the_shape_of_a_shard(name, rows):
    def make():
        return renga.Sequential(L.Convolution2D(3, 2, 3, pad=1), FROM_SHAPES[name])

    refused(make, X[:, :, :rows], ValueError, "extents of whole images")


class OfInputs(renga.Chain):
    """Gives a function images of half the extents, and the shape of its input."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        with self.init_scope():
            self.first = L.Convolution2D(3, 2, 3, 2, 1)

    def forward(self, x):
        return self.function(self.first(x), x.shape[2:])


OF_INPUTS = {
    "resize_images": F.resize_images,
    "average_pooling": lambda h, size: F.average_pooling_2d(h, (size[0], 1)),
    "unpooling": lambda h, size: F.unpooling_2d(h, 2, 2, 0, size, cover_all=False),
}


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", OF_INPUTS)
def test_extents_of_ranks_that_differ(name, ranks):
    """They would wait for messages that no rank sends."""

    def on_rank(comm):
        model = parallelize(OfInputs(OF_INPUTS[name]), comm, "spatial")
        expected = f"{name}.*: expected the extents of whole images, the same on all"
        with pytest.raises(InvalidType, match=expected):
            model(X[:, :, :7, :5].astype("f"))

    local.run(on_rank, ranks=ranks)
