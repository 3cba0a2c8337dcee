"""Windows with large strides, paddings and dilations, against their definition."""

import itertools
import math

import numpy
import pytest

import renga.functions as F

LARGE = [(1, 0, 1), (2**16, 2**16, 1), (2**20, 2**20, 1), (2**21, 2**20, 1)]
LARGE += [(1, 2**13, 2**14), (2**17, 2**16 + 1, 2**17 + 1), (2**31 - 1, 0, 1)]
LARGE += [(2**31 - 1, 3, 1), (5, 2**15 + 5, 2**16)]


def positions(size, k, stride, pad, dilate, cover_all=False):
    remaining = size + 2 * pad - (k - 1) * dilate - 1 + (stride - 1 if cover_all else 0)
    return 0 if remaining < 0 else remaining // stride + 1


def kernel_elements(x, kernel, window, out):
    """The elements of the window of output pixel ``out`` that are in the image."""
    for offset in itertools.product(*map(range, kernel)):
        position = [o * s - p + k * d for o, k, (s, p, d) in zip(out, offset, window)]
        if all(0 <= i < n for i, n in zip(position, x.shape[2:])):
            yield offset, tuple(position)


def convolved(x, W, window):
    """(N, O, …) by the sum that defines a convolution."""
    kernel = W.shape[2:]
    outs = [positions(n, k, *w) for n, k, w in zip(x.shape[2:], kernel, window)]
    y = numpy.zeros((x.shape[0], W.shape[0], *outs))
    for out in itertools.product(*map(range, outs)):
        for offset, position in kernel_elements(x, kernel, window, out):
            y[(..., *out)] += x[(..., *position)] @ W[(..., *offset)].T
    return y


def numbers(*shape):
    return numpy.random.RandomState(0).uniform(-1, 1, shape)


@pytest.mark.parametrize("dtype", ["f", "d", "e"])
@pytest.mark.parametrize("channels", [1, 20])
@pytest.mark.parametrize(("stride", "pad", "dilate"), LARGE)
def test_convolution_1d(stride, pad, dilate, channels, dtype):
    if positions(6, 2, stride, pad, dilate) > 100:
        stride = max(stride, pad // 7)
    x, W = numbers(2, channels, 6).astype(dtype), numbers(3, channels, 2).astype(dtype)
    y = F.convolution_nd(x, W, stride=stride, pad=pad, dilate=dilate)
    expected = convolved(x.astype(float), W.astype(float), [(stride, pad, dilate)])
    assert y.shape == expected.shape
    tolerance = {"f": 1e-5, "d": 1e-12, "e": 2e-2}[dtype]
    numpy.testing.assert_allclose(y.array, expected, tolerance, tolerance)


@pytest.mark.parametrize(
    "rows", [(2**16, 2**16, 1), (2**18, 2**18, 1), (1, 2**15, 2**16), (2**31 - 1, 0, 1)]
)
@pytest.mark.parametrize("groups", [1, 4])
def test_convolution_2d(rows, groups):
    x = numbers(2, 4, 5, 6).astype("f")
    W = numbers(4, 4 // groups, 2, 3).astype("f")
    stride, pad, dilate = zip(rows, (1, 1, 1))
    y = F.convolution_2d(
        x, W, stride=stride, pad=pad, dilate=dilate, groups=groups, b=numpy.ones(4, "f")
    )
    dense = numpy.zeros((4, 4, 2, 3))
    for group in range(groups):
        part = slice(group * 4 // groups, (group + 1) * 4 // groups)
        dense[part, part] = W[part]
    expected = convolved(x.astype(float), dense, [rows, (1, 1, 1)]) + 1
    numpy.testing.assert_allclose(y.array, expected, 1e-5, 1e-5)


@pytest.mark.parametrize(("stride", "pad"), [(2**20, 2**20 - 3), (2**16, 2**16 - 2)])
def test_gradients_of_a_convolution(stride, pad):
    x, W = F.cast(numbers(1, 2, 6), "f"), F.cast(numbers(3, 2, 2), "f")
    x, W = (type(v)(v.array) for v in (x, W))
    y = F.convolution_nd(x, W, stride=stride, pad=pad)
    gy = numbers(*y.shape).astype("f")
    F.sum(y * gy).backward()
    gx, gW = numpy.zeros(x.shape), numpy.zeros(W.shape)
    for (o,) in itertools.product(*map(range, y.shape[2:])):
        for (k,), (i,) in kernel_elements(x.array, (2,), [(stride, pad, 1)], (o,)):
            gx[:, :, i] += gy[:, :, o] @ W.array[:, :, k]
            gW[:, :, k] += gy[:, :, o].T @ x.array[:, :, i]
    assert abs(gx).sum() > 0
    numpy.testing.assert_allclose(x.grad, gx, 1e-5, 1e-5)
    numpy.testing.assert_allclose(W.grad, gW, 1e-5, 1e-5)


@pytest.mark.parametrize("cover_all", [False, True])
@pytest.mark.parametrize(
    ("k", "stride", "pad"),
    [(2, 2**20, 2**20), (2**15, 3, 2**14), (3, 2**31 - 1, 0), (2**21, 2**21, 2**20)],
)
def test_poolings_1d(k, stride, pad, cover_all):
    x = numbers(2, 3, 6).astype("f")
    y, position = F.max_pooling_nd(x, k, stride, pad, cover_all, return_indices=True)
    assert y.shape[2] == positions(6, k, stride, pad, 1, cover_all)
    mean = F.average_pooling_nd(x, k, stride, pad)
    for o in range(y.shape[2]):
        first, last = max(o * stride - pad, 0), max(min(o * stride - pad + k, 6), 0)
        if first >= last:
            assert (y.array[..., o] == -numpy.inf).all()
            continue
        numpy.testing.assert_array_equal(y.array[..., o], x[..., first:last].max(2))
        best = x[..., first:last].argmax(2) + first - (o * stride - pad)
        numpy.testing.assert_array_equal(position[..., o], best)
        if o < mean.shape[2]:
            expected = x[..., first:last].astype(float).sum(2) / k
            numpy.testing.assert_allclose(mean.array[..., o], expected, 1e-5, 1e-12)


@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize("ksize", [2**12, 2**13, (2**20, 2**10), (3, 2**24)])
def test_indices_of_large_windows(ksize, channels):
    """Numbers in the window are integers, also those that no float represents."""
    h, w = ksize if isinstance(ksize, tuple) else (ksize, ksize)
    x = numbers(1, channels, 3, 5).astype("f")
    for image in (
        x,
        numpy.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2),
    ):
        y, position = F.max_pooling_2d(image, (h, w), return_indices=True)
        flat = x.reshape(channels, -1).argmax(1)
        numpy.testing.assert_array_equal(position.ravel(), flat // 5 * w + flat % 5)
        numpy.testing.assert_array_equal(
            y.array.ravel(), x.reshape(channels, -1).max(1)
        )


def test_gradient_of_a_large_window():
    x = F.broadcast_to(numbers(1, 5, 3, 5), (1, 5, 3, 5))
    x = type(x)(x.array.transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2).astype("f"))
    F.sum(F.max_pooling_2d(x, (3, 2**24))).backward()
    expected = (x.array == x.array.max((2, 3), keepdims=True)).astype("f")
    numpy.testing.assert_array_equal(x.grad, expected)


def test_fractions_of_windows_in_the_padding():
    x = numbers(1, 1, 4, 4).astype("f")
    y = F.average_pooling_nd(x, 2, 1, 3, pad_value=None)
    with numpy.errstate(invalid="ignore"):
        for i, j in itertools.product(range(9), repeat=2):
            seen = x[0, 0, max(i - 3, 0) : max(i - 1, 0), max(j - 3, 0) : max(j - 1, 0)]
            expected = seen.sum() / seen.size if seen.size else math.nan
            numpy.testing.assert_allclose(y.array[0, 0, i, j], expected, 1e-5, 1e-6)


def test_upsampling_drops_what_falls_outside_the_image():
    """With a stride above the window's size the last window may be beyond the end."""
    x = numpy.arange(1.0, 4.0, dtype="f").reshape(1, 1, 3, 1)
    indexes = numpy.zeros(x.shape, "i")
    y = F.upsampling_2d(x, indexes, (2, 1), (5, 1), outsize=(8, 1))
    numpy.testing.assert_array_equal(y.array.ravel(), [1, 0, 0, 0, 0, 2, 0, 0])
