"""Convolutions by Winograd's algorithm against sums in float64."""

import functools

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import _core
from tests.links.cases.algorithms import convolutions_by
from tests.threads import on_threads

# Root mean square of the error over that of the result.
BOUND = 3e-6


@pytest.fixture(params=["winograd", "direct"])
def kernel(request):
    with convolutions_by(request.param):
        yield request.param


def operands(batch, channels, filters, extents, pad, stride=1, ksize=3):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, channels, *extents), "f")
    W = rng.standard_normal((filters, channels, ksize, ksize), "f")
    outputs = ((n + 2 * p - ksize) // stride + 1 for n, p in zip(extents, pad))
    return x, W, rng.standard_normal((batch, filters, *outputs), "f")


def in_float64(x, W, gy, pad, stride=1):
    """y, gx and gW, one kernel element after the other."""
    x, W, gy = (a.astype("d") for a in (x, W, gy))
    (top, left), (rows, columns) = pad, gy.shape[2:]
    padded = np.pad(x, [(0, 0), (0, 0), (top, top), (left, left)])
    y, gx, gW = np.zeros_like(gy), np.zeros_like(padded), np.zeros_like(W)
    for i, j in np.ndindex(W.shape[2:]):
        window = (
            slice(i, i + stride * rows, stride),
            slice(j, j + stride * columns, stride),
        )
        elements, weights = padded[:, :, window[0], window[1]], W[:, :, i, j]
        y += np.einsum("nchw,oc->nohw", elements, weights, optimize=True)
        gx[:, :, window[0], window[1]] += np.einsum(
            "nohw,oc->nchw", gy, weights, optimize=True
        )
        gW[:, :, i, j] = np.einsum("nchw,nohw->oc", elements, gy, optimize=True)
    return y, gx[:, :, top : top + x.shape[2], left : left + x.shape[3]], gW


def in_renga(x, W, gy, pad, stride=1):
    x, W = renga.Variable(x), renga.Variable(W)
    y = F.convolution_2d(x, W, stride=stride, pad=pad)
    gx, gW = renga.grad([y], [x, W], [renga.Variable(gy)])
    return y.array, gx.array, gW.array


def relative_error(actual, expected):
    assert actual.dtype == np.float32 and actual.shape == expected.shape
    return np.sqrt(np.mean((actual - expected) ** 2) / np.mean(expected**2))


@functools.cache  # both kernels are compared with them
def passes(batch, channels, filters, extents, pad, stride, ksize):
    """Operands, and their y, gx and gW in float64."""
    arrays = operands(batch, channels, filters, extents, pad, stride, ksize)
    return arrays, in_float64(*arrays, pad, stride)


@pytest.mark.parametrize(
    "batch, channels, filters, extents, pad, stride, ksize",
    [
        (2, 32, 64, (8, 8), (1, 1), 1, 3),
        (3, 64, 32, (5, 7), (0, 2), 1, 3),
        (1, 96, 32, (3, 11), (2, 0), 1, 3),
        (5, 32, 64, (2, 2), (1, 1), 1, 3),
        (1, 32, 32, (1, 1), (1, 1), 1, 3),
        (1, 32, 32, (1, 2), (2, 1), 1, 3),
        # many weights and few pixels: smaller tiles
        (1, 512, 256, (9, 6), (1, 1), 1, 3),
        (16, 256, 256, (4, 4), (1, 1), 1, 3),
        (9, 256, 256, (4, 5), (2, 0), 1, 3),
        (40, 64, 64, (13, 15), (1, 0), 1, 3),
        (2, 32, 64, (8, 8), (1, 1), 2, 4),
        (3, 64, 32, (9, 7), (0, 2), 2, 4),
        (1, 96, 32, (6, 13), (2, 0), 2, 4),
        (2, 32, 32, (1, 1), (2, 2), 2, 4),
        (1, 256, 512, (8, 8), (1, 1), 2, 4),
        (40, 64, 32, (14, 10), (1, 1), 2, 4),
        (2, 32, 64, (8, 8), (1, 1), 2, 3),
        (3, 64, 32, (9, 7), (0, 2), 2, 3),
        (1, 96, 32, (6, 13), (2, 0), 2, 3),
        (2, 32, 32, (1, 1), (2, 2), 2, 3),
        (1, 256, 512, (8, 8), (1, 1), 2, 3),
        (40, 64, 32, (14, 10), (1, 1), 2, 3),
        (2, 32, 32, (2, 1), (1, 1), 2, 3),
    ],
)
def test_passes(kernel, batch, channels, filters, extents, pad, stride, ksize):
    arrays, expected = passes(batch, channels, filters, extents, pad, stride, ksize)
    for actual, exact in zip(in_renga(*arrays, pad, stride), expected):
        assert relative_error(actual, exact) < BOUND


@pytest.mark.parametrize("ksize, extent", [(4, 7), (3, 6)])
def test_windows_past_the_padding(kernel, ksize, extent):
    x, W, _ = operands(2, 32, 32, (extent, extent), (0, 0), 2, ksize)
    y = F.convolution_2d(x, W, stride=2, cover_all=True)
    covered = np.pad(x, [(0, 0), (0, 0), (0, 1), (0, 1)])
    expected, _, _ = in_float64(covered, W, np.zeros(y.shape), (0, 0), 2)
    assert relative_error(y.array, expected) < BOUND


def test_images_in_any_order_of_memory(kernel):
    x, W, gy = operands(2, 32, 32, (6, 9), (1, 1))
    expected = in_float64(x, W, gy, (1, 1))
    last = [a.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2) for a in (x, gy)]
    turned = [a[:, :, ::-1].copy()[:, :, ::-1] for a in (x, W, gy)]
    for arrays in ((last[0], W, last[1]), turned):
        for actual, exact in zip(in_renga(*arrays, (1, 1)), expected):
            assert relative_error(actual, exact) < BOUND


def test_empty_batch(kernel):
    y, gx, gW = in_renga(*operands(0, 32, 32, (8, 8), (1, 1)), (1, 1))
    assert y.shape == gx.shape == (0, 32, 8, 8)
    assert not gW.any()


def test_float16_is_computed_in_float32(kernel):
    x, W, gy = operands(2, 32, 32, (8, 8), (1, 1))
    x, W, gy = (a.astype("e") for a in (x, W, gy))
    for actual, exact in zip(in_renga(x, W, gy, (1, 1)), in_float64(x, W, gy, (1, 1))):
        assert actual.dtype == np.float16
        assert relative_error(actual.astype("f"), exact) < 1e-3


@pytest.mark.parametrize(
    "channels, filters, size, stride, ksize",
    [
        (32, 64, 16, 1, 3),
        (128, 256, 4, 1, 3),
        (64, 64, 2, 1, 3),
        (32, 64, 16, 2, 4),
        (32, 64, 16, 2, 3),
    ],
)
def test_any_number_of_threads_computes_the_same_numbers(
    channels, filters, size, stride, ksize
):
    arrays = operands(24, channels, filters, (size, size), (1, 1), stride, ksize)
    with convolutions_by("winograd"):
        results = on_threads(lambda: in_renga(*arrays, (1, 1), stride))
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_array_equal(a, b)


def test_winograd_is_selected_for_large_layers():
    arrays = operands(8, 64, 64, (16, 16), (1, 1))
    results = {}
    for name in ("auto", "winograd", "direct"):
        with convolutions_by(name):
            results[name] = in_renga(*arrays, (1, 1))
    for auto, winograd, direct in zip(*results.values()):
        np.testing.assert_array_equal(auto, winograd)
        assert (auto != direct).any()


def test_unknown_kernel():
    with pytest.raises(ValueError, match="winograd, gemm, dilated, im2col, got fft"):
        _core.use_convolution_kernel("fft")
