"""Pooling over one to four axes against single windows in NumPy."""

import numpy
import pytest

import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)

WINDOWS = [  # extents, ksize, stride, pad
    ((7,), (3,), (2,), (1,)),
    ((5, 4), (2, 3), (2, 1), (0, 1)),
    ((4, 3, 5), (2, 2, 3), (1, 2, 2), (1, 0, 1)),
    ((2, 3, 2, 4), (2, 2, 1, 2), (1, 1, 1, 2), (0, 1, 0, 1)),
]


def each_window(x, ksize, stride, pad, cover_all=False):
    """(position, elements (…, window), NaN in the padding) for every window."""
    after = [p + (s - 1 if cover_all else 0) for p, s in zip(pad, stride)]
    widths = [(0, 0), (0, 0), *zip(pad, after)]
    x = numpy.pad(x, widths, constant_values=numpy.nan)
    outs = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], ksize, stride)]
    for position in numpy.ndindex(*outs):
        window = tuple(
            slice(o * s, o * s + k) for o, s, k in zip(position, stride, ksize)
        )
        yield position, x[(..., *window)].reshape(*x.shape[:2], -1)


def pooled(x, reduce, *window):
    found = dict(each_window(x, *window))
    outs = [n + 1 for n in max(found)]
    return numpy.stack([reduce(v) for v in found.values()], -1).reshape(
        *x.shape[:2], *outs
    )


def maxima(window):
    return numpy.nanmax(window, -1)


def image(*extents):
    return rng.permutation(numpy.arange(6.0 * numpy.prod(extents))).reshape(
        2, 3, *extents
    )


@pytest.mark.parametrize(("extents", "ksize", "stride", "pad"), WINDOWS)
@pytest.mark.parametrize("cover_all", [False, True])
def test_max_pooling_nd(extents, ksize, stride, pad, cover_all):
    x = image(*extents)
    window = (ksize, stride, pad, cover_all)
    check(
        lambda x: F.max_pooling_nd(x, *window) / 64,
        lambda x: pooled(x, maxima, *window) / 64,
        x,
    )


@pytest.mark.parametrize(("extents", "ksize", "stride", "pad"), WINDOWS)
@pytest.mark.parametrize("channels_last", [False, True])
def test_max_pooling_nd_tells_where(extents, ksize, stride, pad, channels_last):
    # Few distinct values, so there are ties: the first in the window is chosen.
    x = rng.integers(0, 3, size=(2, 3, *extents)).astype("f")
    if channels_last:
        x = numpy.moveaxis(numpy.ascontiguousarray(numpy.moveaxis(x, 1, -1)), -1, 1)
    y, at = F.max_pooling_nd(x, ksize, stride, pad, return_indices=True)
    expected = pooled(x, lambda w: numpy.nanargmax(w, -1), ksize, stride, pad, True)
    assert at.dtype == numpy.int64
    numpy.testing.assert_array_equal(at, expected)
    numpy.testing.assert_array_equal(
        y.array, pooled(x, maxima, ksize, stride, pad, True)
    )


@pytest.mark.parametrize(
    ("extents", "ksize", "stride", "pad"),
    [
        ((5,), (3,), (3,), (1,)),
        ((2,), (1,), (2,), (2,)),
        ((3, 2), (1, 2), (1, 3), (0, 2)),
        ((2, 3, 2), (2, 1, 2), (2, 3, 3), (2, 0, 2)),
        ((3, 2, 2), (2, 2, 2), (1, 2, 2), (0, 2, 2)),
    ],
)
def test_windows_without_elements_are_at_0(extents, ksize, stride, pad):
    x = rng.normal(size=(2, 3, *extents))
    y, at = F.max_pooling_nd(x, ksize, stride, pad, return_indices=True)
    filled = [
        numpy.where(numpy.isnan(window), -numpy.inf, window)
        for _, window in each_window(x, ksize, stride, pad, True)
    ]
    numpy.testing.assert_array_equal(
        at.reshape(2, 3, -1), numpy.stack([w.argmax(-1) for w in filled], -1)
    )
    numpy.testing.assert_array_equal(
        y.array.reshape(2, 3, -1), numpy.stack([w.max(-1) for w in filled], -1)
    )


@pytest.mark.parametrize(("extents", "ksize", "stride", "pad"), WINDOWS)
def test_average_pooling_nd(extents, ksize, stride, pad):
    x = rng.normal(size=(2, 3, *extents))
    window = (ksize, stride, pad)

    def with_zeros(x):
        return pooled(x, lambda w: numpy.nan_to_num(w).mean(-1), *window)

    def without(x):
        return pooled(x, lambda w: numpy.nanmean(w, -1), *window)

    check(lambda x: F.average_pooling_nd(x, *window), with_zeros, x)
    check(lambda x: F.average_pooling_nd(x, *window, pad_value=None), without, x)


@pytest.mark.parametrize(("extents", "ksize", "stride", "pad"), WINDOWS)
def test_unpooling_nd(extents, ksize, stride, pad):
    x = rng.normal(size=(2, 3, *extents))

    def reference(x):
        wide = [(n - 1) * s + k for n, s, k in zip(extents, stride, ksize)]
        y = numpy.zeros((2, 3, *wide))
        for position in numpy.ndindex(*extents):
            window = tuple(
                slice(o * s, o * s + k) for o, s, k in zip(position, stride, ksize)
            )
            piece = x[(..., *position)]
            y[(..., *window)] += piece.reshape(*piece.shape, *(1,) * len(extents))
        return y[(..., *(slice(p, n - p) for p, n in zip(pad, wide)))]

    check(
        lambda x: F.unpooling_nd(x, ksize, stride, pad, cover_all=False), reference, x
    )


def test_of_one_and_three_axes():
    x1, x3 = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 4, 4, 4))
    halves = x1.reshape(2, 3, 2, 2)
    cubes = x3.reshape(2, 3, 2, 2, 2, 2, 2, 2)
    for y, expected in (
        (F.max_pooling_1d(x1, 2), halves.max(-1)),
        (F.average_pooling_1d(x1, 2), halves.mean(-1)),
        (F.unpooling_1d(x1, 2, cover_all=False), x1.repeat(2, -1)),
        (F.max_pooling_3d(x3, 2), cubes.max((3, 5, 7))),
        (F.average_pooling_3d(x3, 2), cubes.mean((3, 5, 7))),
        (F.unpooling_3d(x3, 1), x3),
    ):
        numpy.testing.assert_allclose(y.array, expected, rtol=1e-12)


x1 = rng.normal(size=(2, 3, 4))
FAULTS = [
    (lambda: F.max_pooling_nd(x1.astype("i"), 2), InvalidType),
    (lambda: F.max_pooling_nd(x1, (2, 2)), AssertionError),
    (lambda: F.max_pooling_1d(x1[..., None], 2), ValueError),
    (lambda: F.max_pooling_3d(x1, 2), ValueError),
    (lambda: F.average_pooling_1d(x1[..., None], 2), ValueError),
    (lambda: F.average_pooling_3d(x1, 2), ValueError),
    (lambda: F.average_pooling_nd(x1, 2, pad_value=1), ValueError),
    (lambda: F.unpooling_1d(x1[..., None], 2), ValueError),
    (lambda: F.unpooling_3d(x1, 2), ValueError),
    (lambda: F.unpooling_nd(x1, 2, outsize=(3,)), InvalidType),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
