"""Deformable convolutions and shifts against single pixels in NumPy."""

import numpy
import pytest

import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)


def value(image, row, column):
    """Bilinear interpolation among zeros."""
    total = numpy.zeros(image.shape[0])
    for i, j in numpy.ndindex(*image.shape[1:]):
        share = max(0, 1 - abs(row - i)) * max(0, 1 - abs(column - j))
        total = total + share * image[:, i, j]
    return total


@pytest.mark.parametrize(
    ("kernel", "stride", "pad"), [((2, 3), (1, 2), (1, 0)), ((2, 2), 2, 1)]
)
def test_deformable_convolution_2d_sampler(kernel, stride, pad):
    sy, sx = stride if isinstance(stride, tuple) else (stride, stride)
    py, px = pad if isinstance(pad, tuple) else (pad, pad)
    kh, kw = kernel
    x = rng.normal(size=(2, 2, 4, 5))
    outs = (4 + 2 * py - kh) // sy + 1, (5 + 2 * px - kw) // sx + 1
    offset = rng.uniform(-1.3, 1.3, size=(2, 2 * kh * kw, *outs))
    w, b = rng.normal(size=(3, 2, kh, kw)), rng.normal(size=3)

    def reference(x, offset, w, b):
        y = numpy.tile(b[:, None, None], (2, 1, *outs))
        for n, i, j, element in numpy.ndindex(2, *outs, kh * kw):
            row = i * sy - py + element // kw + offset[n, kh * kw + element, i, j]
            column = j * sx - px + element % kw + offset[n, element, i, j]
            weights = w[:, :, element // kw, element % kw]
            y[n, :, i, j] += weights @ value(x[n], row, column)
        return y

    check(
        lambda *v: F.deformable_convolution_2d_sampler(*v, stride, pad),
        reference,
        x,
        offset,
        w,
        b,
    )


@pytest.mark.parametrize(
    ("ksize", "dilate", "channels"), [(3, 1, 20), ((1, 3), (1, 2), 4), (3, 2, 9)]
)
def test_shift(ksize, dilate, channels):
    kh, kw = ksize if isinstance(ksize, tuple) else (ksize, ksize)
    dy, dx = dilate if isinstance(dilate, tuple) else (dilate, dilate)

    def reference(x):
        y = x.copy()
        size, last = channels // (kh * kw), kh * kw - 1
        for c in range(size * kh * kw):
            position = {last // 2: last, last: last // 2}.get(c // size, c // size)
            row, column = divmod(position, kw)
            for n, i, j in numpy.ndindex(2, *x.shape[2:]):
                p, q = i + (kh // 2 - row) * dy, j + (kw // 2 - column) * dx
                inside = 0 <= p < x.shape[2] and 0 <= q < x.shape[3]
                y[n, c, i, j] = x[n, c, p, q] if inside else 0
        return y

    check(
        lambda x: F.shift(x, ksize, dilate),
        reference,
        rng.normal(size=(2, channels, 3, 4)),
    )


x, w = rng.normal(size=(1, 9, 3, 3)), rng.normal(size=(2, 9, 3, 3))
none = numpy.zeros((1, 0, 4, 1))  # the offset for filters without rows
FAULTS = [
    (lambda: F.shift(x, 2), ValueError),
    (lambda: F.shift(x[:, :8]), InvalidType),
    (lambda: F.shift(x.astype("i")), InvalidType),
    (lambda: F.shift(x[0]), InvalidType),
    (lambda: F.deformable_convolution_2d_sampler(x, x[..., :1, :1], w), InvalidType),
    (lambda: F.deformable_convolution_2d_sampler(x[:, :3], x, w), InvalidType),
    (lambda: F.deformable_convolution_2d_sampler(x, x, w.astype("f")), InvalidType),
    (lambda: F.deformable_convolution_2d_sampler(x, none, w[:, :, :0]), InvalidType),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
