"""Convolutions of volumes by Winograd's algorithm against sums in float64."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import kernels
from tests.links.cases.algorithms import convolutions_by
from tests.threads import on_threads

# Root mean square of the error over that of the result.
BOUND = 3e-6


def operands(batch, channels, filters, extents, pad, depth=3):
    rng = np.random.default_rng(0)
    ksize = depth, 3, 3
    x = rng.standard_normal((batch, channels, *extents), "f")
    W = rng.standard_normal((filters, channels, *ksize), "f")
    outputs = (n + 2 * p - k + 1 for n, p, k in zip(extents, pad, ksize))
    return x, W, rng.standard_normal((batch, filters, *outputs), "f")


def in_float64(x, W, gy, pad):
    """y, gx and gW, one kernel element after the other."""
    x, W, gy = (a.astype("d") for a in (x, W, gy))
    padded = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pad)])
    every = slice(None), slice(None)  # sample and channel
    y, gx, gW = np.zeros_like(gy), np.zeros_like(padded), np.zeros_like(W)
    for place in np.ndindex(W.shape[2:]):
        read = tuple(slice(i, i + n) for i, n in zip(place, gy.shape[2:]))
        read = every + read
        weights = W[every + place]
        y += np.einsum("ncdhw,oc->nodhw", padded[read], weights, optimize=True)
        gx[read] += np.einsum("nodhw,oc->ncdhw", gy, weights, optimize=True)
        of_place = np.einsum("ncdhw,nodhw->oc", padded[read], gy, optimize=True)
        gW[every + place] = of_place
    inner = tuple(slice(p, p + n) for p, n in zip(pad, x.shape[2:]))
    return y, gx[every + inner], gW


def in_renga(x, W, gy, pad):
    x, W = renga.Variable(x), renga.Variable(W)
    y = F.convolution_3d(x, W, pad=pad)
    gx, gW = renga.grad([y], [x, W], [renga.Variable(gy)])
    return y.array, gx.array, gW.array


def relative_error(actual, expected):
    assert actual.dtype == np.float32 and actual.shape == expected.shape
    return np.sqrt(np.mean((actual - expected) ** 2) / np.mean(expected**2))


def check(arrays, pad):
    with convolutions_by("winograd"):
        actual = in_renga(*arrays, pad)
        assert not kernels.choices()  # no other algorithm has run
    for passed, exact in zip(actual, in_float64(*arrays, pad)):
        assert relative_error(passed, exact) < BOUND


@pytest.mark.parametrize(
    "batch, channels, filters, extents, pad, depth",
    [
        (2, 32, 64, (5, 9, 10), (1, 1, 1), 3),
        (3, 64, 32, (4, 5, 7), (0, 0, 2), 3),
        (1, 96, 32, (3, 3, 11), (2, 2, 0), 3),
        (2, 32, 32, (2, 5, 6), (3, 1, 1), 3),  # some slices read padding alone
        (2, 32, 64, (4, 2, 2), (1, 1, 1), 3),
        (2, 32, 32, (1, 6, 6), (1, 1, 1), 3),
        (2, 32, 32, (5, 6, 6), (0, 1, 1), 1),
        (2, 32, 32, (5, 6, 6), (1, 1, 1), 2),
        (1, 32, 32, (6, 4, 5), (2, 0, 1), 5),
        (1, 256, 128, (3, 9, 6), (1, 1, 1), 3),  # many weights and few pixels
    ],
)
def test_passes(batch, channels, filters, extents, pad, depth):
    check(operands(batch, channels, filters, extents, pad, depth), pad)


def test_volumes_in_any_order_of_memory():
    x, W, gy = operands(2, 32, 32, (4, 6, 9), (1, 1, 1))
    last, first = (0, 2, 3, 4, 1), (0, 4, 1, 2, 3)
    last = [a.transpose(last).copy().transpose(first) for a in (x, gy)]
    check((last[0], W, last[1]), (1, 1, 1))
    turned = [a[:, :, ::-1].copy()[:, :, ::-1] for a in (x, W, gy)]
    check(turned, (1, 1, 1))


def test_weight_gradients_add_up():
    """The second is added to the first in place."""
    pad = 1, 1, 1
    x, W, gy = operands(2, 32, 32, (4, 6, 9), pad)
    link = L.Convolution3D(32, 32, 3, pad=1, nobias=True, initialW=W)
    link.cleargrads()
    with convolutions_by("winograd"):
        for _ in range(2):
            y = link(x)
            y.grad = gy
            y.backward()
    _, _, gW = in_float64(x, W, gy, pad)
    assert relative_error(link.W.grad, 2 * gW) < BOUND


def test_bias_and_kept_weights():
    pad = 1, 1, 1
    x, W, gy = operands(2, 32, 32, (4, 6, 9), pad)
    b = np.arange(32, dtype="f")
    link = L.Convolution3D(32, 32, 3, pad=1, initialW=W, initial_bias=b)
    expected, _, _ = in_float64(x, W, gy, pad)
    expected += b[:, None, None, None]
    with convolutions_by("winograd"), renga.no_backprop_mode():
        for _ in range(2):
            assert relative_error(link(x).array, expected) < BOUND
        link.W.array[...] *= 2
        doubled = 2 * expected - b[:, None, None, None]
        assert relative_error(link(x).array, doubled) < BOUND


@pytest.mark.parametrize("channels, filters, size", [(32, 64, 16), (128, 256, 4)])
def test_any_number_of_threads_computes_the_same_numbers(channels, filters, size):
    arrays = operands(4, channels, filters, (6, size, size), (1, 1, 1))
    with convolutions_by("winograd"):
        results = on_threads(lambda: in_renga(*arrays, (1, 1, 1)))
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_array_equal(a, b)


def test_winograd_is_selected_for_large_layers():
    kernels.forget()
    in_renga(*operands(1, 32, 32, (8, 16, 16), (1, 1, 1)), (1, 1, 1))
    assert list(kernels.choices().values()) == ["winograd"] * 3


def test_copied_weights_cost_more_than_few_pixels_gain():
    kernels.forget()
    in_renga(*operands(1, 512, 512, (1, 4, 4), (1, 1, 1)), (1, 1, 1))
    assert list(kernels.choices().values()) == ["direct"] * 3
