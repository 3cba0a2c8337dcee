"""Connections other than plain layers, against NumPy."""

import numpy
import pytest

import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
x = rng.normal(size=(2, 3, 5, 4)) / 2
e1, e2 = rng.normal(size=(2, 3)), rng.normal(size=(2, 2, 2))
w, v1, v2, b = (rng.normal(size=s) / 2 for s in ((3, 4, 5), (3, 5), (4, 5), (5,)))


def windows(x, size, stride=1, dilate=1):
    """(N, C, H', W', kh, kw)."""
    reach = [(k - 1) * dilate + 1 for k in size]
    view = numpy.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
    return view[:, :, ::stride, ::stride, ::dilate, ::dilate]


def test_dilated_convolution_2d():
    filters = rng.normal(size=(2, 3, 2, 2)) / 2
    check(
        lambda x, w: F.dilated_convolution_2d(x, w, None, 1, 0, 2),
        lambda x, w: numpy.einsum("nchwij,ocij->nohw", windows(x, (2, 2), 1, 2), w),
        x,
        filters,
    )


def test_depthwise_convolution_2d():
    filters, bias = rng.normal(size=(2, 3, 2, 2)) / 2, rng.normal(size=6)

    def reference(x, w, b):
        y = numpy.einsum("nchwij,mcij->ncmhw", windows(x, (2, 2), 2), w)
        return y.reshape(2, 6, *y.shape[3:]) + b[:, None, None]

    check(
        lambda x, w, b: F.depthwise_convolution_2d(x, w, b, 2),
        reference,
        x,
        filters,
        bias,
    )


@pytest.mark.parametrize("stride", [1, 2])
def test_local_convolution_2d(stride):
    outs = windows(x, (2, 3), stride).shape[2:4]
    filters = rng.normal(size=(2, *outs, 3, 2, 3)) / 2
    bias = rng.normal(size=(2, *outs))

    def reference(x, w, b):
        return numpy.einsum("nchwij,ohwcij->nohw", windows(x, (2, 3), stride), w) + b

    check(
        lambda x, w, b: F.local_convolution_2d(x, w, b, stride),
        reference,
        x,
        filters,
        bias,
    )


def test_bilinear():
    def products(e1, e2, w):
        return numpy.einsum("nj,nk,jkl->nl", e1, e2.reshape(2, 4), w)

    def sums(e1, e2, w, v1, v2, b):
        return products(e1, e2, w) + e1 @ v1 + e2.reshape(2, 4) @ v2 + b

    check(F.bilinear, products, e1, e2, w)
    check(F.bilinear, sums, e1, e2, w, v1, v2, b)


FAULTS = [
    (lambda: F.depthwise_convolution_2d(x, numpy.ones((2, 1, 2, 2))), InvalidType),
    (lambda: F.local_convolution_2d(x, numpy.ones((2, 4, 3, 2, 2, 2))), InvalidType),
    (lambda: F.local_convolution_2d(x, numpy.ones((2, 4, 4, 3, 2, 2))), InvalidType),
    (lambda: F.bilinear(e1, e2, w, v1), ValueError),
    (lambda: F.bilinear(e1, e2, v1), InvalidType),
    (lambda: F.bilinear(e1, e2, w.astype("f")), InvalidType),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
