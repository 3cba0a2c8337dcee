"""Unpooling, upsampling and pyramid pooling against NumPy."""

import numpy
import pytest

import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
x = rng.normal(size=(2, 3, 3, 2))
image = rng.normal(size=(2, 3, 6, 7))

WINDOWS = [  # ksize, stride, pad, outsize given, cover_all, outsize
    ((2, 2), None, (0, 0), None, False, (6, 4)),
    ((2, 2), None, (0, 0), None, True, (5, 3)),
    ((3, 2), (2, 1), (1, 0), None, False, (5, 3)),
    ((3, 3), (2, 2), (1, 1), None, True, (4, 2)),
    ((2, 3), (2, 2), (0, 1), (6, 4), False, (6, 4)),
]


def put(x, position, window):
    """Sum over pixels, each added to its window at ``position``."""
    ksize, stride, pad, _, _, outsize = window
    stride = stride or ksize
    y = numpy.zeros((*x.shape[:2], *outsize))
    for n, c, h, w in numpy.ndindex(x.shape):
        for i, j in position(ksize, (n, c, h, w)):
            row, column = h * stride[0] - pad[0] + i, w * stride[1] - pad[1] + j
            if 0 <= row < outsize[0] and 0 <= column < outsize[1]:
                y[n, c, row, column] += x[n, c, h, w]
    return y


@pytest.mark.parametrize("window", WINDOWS)
def test_unpooling_2d(window):
    check(
        lambda x: F.unpooling_2d(x, *window[:5]),
        lambda x: put(x, lambda ksize, _: numpy.ndindex(*ksize), window),
        x,
    )


@pytest.mark.parametrize("window", WINDOWS)
def test_upsampling_2d(window):
    indexes = rng.integers(0, window[0][0] * window[0][1], size=x.shape)
    check(
        lambda x: F.upsampling_2d(x, indexes, *window[:5]),
        lambda x: put(x, lambda k, at: [divmod(indexes[at], k[1])], window),
        x,
    )


def test_upsampling_undoes_pooling():
    maxima, indexes = F.max_pooling_2d(image, 2, cover_all=False, return_indices=True)
    y = F.upsampling_2d(maxima, indexes, 2, outsize=image.shape[2:])
    there = y.array != 0
    numpy.testing.assert_array_equal(y.array[there], image[there])
    assert there.sum() == maxima.size


def test_spatial_pyramid():
    def reference(x):
        total = x.max((2, 3))
        quarters = [
            x[:, :, r, c].max((2, 3))
            for r in (slice(0, 3), slice(3, 6))
            for c in (slice(0, 4), slice(4, 7))
        ]
        cells = numpy.stack(quarters, 2).reshape(len(x), -1)
        return numpy.concatenate([total, cells], 1)[..., None, None]

    check(lambda x: F.spatial_pyramid_pooling_2d(x, 2, "max"), reference, image)


FAULTS = [
    (lambda: F.unpooling_2d(x[0], 2), InvalidType),
    (lambda: F.unpooling_2d(x.astype("i"), 2), InvalidType),
    (lambda: F.unpooling_2d(x, 2, outsize=(8, 8)), InvalidType),
    (lambda: F.upsampling_2d(x, numpy.zeros((2, 3, 3, 1), "i"), 2), InvalidType),
    (lambda: F.upsampling_2d(x[0], numpy.zeros((3, 3, 2), "i"), 2), InvalidType),
    (lambda: F.spatial_pyramid_pooling_2d(x, 2), ValueError),
    (lambda: F.spatial_pyramid_pooling_2d(x, 2, "average"), ValueError),
    (lambda: F.spatial_pyramid_pooling_2d(x[0], 2, "max"), InvalidType),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
