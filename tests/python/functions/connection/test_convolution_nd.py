"""Convolution over one and three axes: options and errors.

The operation itself is compared with its definition in tests/python/ops.
"""

import numpy
import pytest

import renga.functions as F
from renga.utils.type_check import InvalidType

rng = numpy.random.default_rng(0)


def naive(x, w):
    """The sum over kernel elements, at stride 1 without padding."""
    sizes = [n - k + 1 for n, k in zip(x.shape[2:], w.shape[2:])]
    y = numpy.zeros((len(x), len(w), *sizes))
    for offset in numpy.ndindex(*w.shape[2:]):
        window = tuple(slice(t, t + n) for t, n in zip(offset, sizes))
        y += numpy.einsum("nc...,oc->no...", x[(..., *window)], w[(..., *offset)])
    return y


@pytest.mark.parametrize(
    ("function", "size", "kernel"),
    [
        (F.convolution_1d, (9,), (4,)),
        (F.convolution_3d, (5, 6, 4), (3, 2, 4)),
        (F.convolution_nd, (5, 6), (3, 2)),
    ],
)
def test_strides_pads_and_cover_all(function, size, kernel):
    x, w = rng.normal(size=(2, 3, *size)), rng.normal(size=(4, 3, *kernel))
    numpy.testing.assert_allclose(function(x, w).array, naive(x, w), rtol=1e-9)
    pads = [(0, 0), (0, 0), *[(1, 1)] * len(size)]
    expected = naive(numpy.pad(x, pads), w)[(..., *[slice(None, None, 2)] * len(size))]
    y = function(x, w, stride=2, pad=1)
    numpy.testing.assert_allclose(y.array, expected, rtol=1e-9)
    # One step more, on zeros, along the axes that the strides do not cover.
    y = function(x, w, stride=2, pad=1, cover_all=True)
    pads = [(0, 0), (0, 0), *[(1, 2)] * len(size)]
    expected = naive(numpy.pad(x, pads), w)[(..., *[slice(None, None, 2)] * len(size))]
    numpy.testing.assert_allclose(y.array, expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["e", "f"])
def test_three_axes_in_float32_and_float16(dtype):
    x, w = rng.normal(size=(2, 4, 5, 6, 4)) / 4, rng.normal(size=(8, 4, 3, 2, 4)) / 4
    y = F.convolution_3d(x.astype(dtype), w.astype(dtype))
    assert y.dtype == dtype
    tolerance = {"e": 1e-2, "f": 1e-5}[dtype]
    numpy.testing.assert_allclose(y.array, naive(x, w), tolerance, tolerance)


def test_deconvolution_undoes_the_shape_of_convolution():
    x, w = rng.normal(size=(1, 4, 3, 2, 3)), rng.normal(size=(4, 2, 3, 3, 3))
    y = F.deconvolution_3d(x, w, stride=2, pad=1, outsize=(6, 3, 5))
    assert y.shape == (1, 2, 6, 3, 5)
    z = rng.normal(size=y.shape)
    # The transposed map: <z, D x> = <C z, x>.
    back = F.convolution_3d(z, w, stride=2, pad=1)
    total = float((back.array * x).sum())
    assert float((y.array * z).sum()) == pytest.approx(total)
    assert F.deconvolution_1d(x[..., 0, 0], w[..., 0, 0]).shape == (1, 2, 5)


x1, w1 = rng.normal(size=(2, 3, 9)), rng.normal(size=(4, 3, 4))
FAULTS = [
    (lambda: F.convolution_1d(x1[..., None], w1), ValueError),
    (lambda: F.convolution_3d(x1, w1), ValueError),
    (lambda: F.deconvolution_1d(x1[..., None], w1), ValueError),
    (lambda: F.deconvolution_3d(x1, w1), ValueError),
    (lambda: F.convolution_nd(x1, w1[:, :2]), InvalidType),
    (lambda: F.convolution_nd(x1, w1[..., None]), InvalidType),
    (lambda: F.convolution_nd(x1.astype("i"), w1), InvalidType),
    (lambda: F.convolution_nd(x1, w1, numpy.ones(3)), InvalidType),
    (lambda: F.convolution_nd(x1, w1, stride=(1, 1)), AssertionError),
    (lambda: F.deconvolution_nd(x1, w1, numpy.ones(5)), InvalidType),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
