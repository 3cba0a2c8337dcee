"""Depthwise convolutions against NumPy in float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import renga
import renga.functions as F
from tests.links.cases import windows
from tests.links.cases.algorithms import convolutions_by
from tests.links.cases.windows import hold
from tests.threads import on_threads

# channels, kernel, stride, pad, dilate, extents
CASES = [
    (64, (3, 3), 1, 1, 1, (9, 17)),
    (80, (3, 3), 2, 1, 1, (9, 12)),
    (37, (5, 5), 1, 2, 1, (7, 8)),
    (5, (3, 2), (2, 1), (0, 1), 1, (6, 9)),
    (16, (4, 4), 3, 2, 1, (8, 20)),
    (24, (2, 3), 1, (1, 4), (3, 2), (9, 10)),
    (2, (1, 7), 1, (0, 3), 1, (2, 30)),
    (33, (1, 1), 2, 0, 1, (5, 5)),
    (8, (5, 6), 1, 3, 1, (2, 2)),
    (20, (3, 3), 2, 1, 1, (130, 70)),
    (40, (7, 7), 1, 12, 4, (19, 30)),
    (20, (5, 5), 2, 3, 3, (17, 43)),
    (33, (3, 3), 1, 2, 2, (9, 9)),
    (24, (3, 5), 1, (1, 9), (1, 5), (6, 4)),
    (16, (3, 3), 1, (0, 30), (1, 30), (4, 7)),  # columns that read padding alone
    (24, (3, 3, 3), 1, 1, 1, (5, 6, 7)),
    (37, (2, 3, 5), (1, 2, 1), (0, 1, 2), (1, 1, 2), (4, 7, 19)),
    (16, (3, 1, 3), (3, 1, 2), (1, 0, 1), (2, 1, 1), (9, 4, 20)),
    (8, (1, 9, 4), 1, (0, 4, 1), 1, (3, 9, 6)),
]


@pytest.fixture(autouse=True)
def depthwise() -> Iterator[None]:
    with convolutions_by("depthwise"):
        yield


def operands(channels, kernel, extents, batch=3):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, channels, *extents), "f")
    W = rng.standard_normal((channels, 1, *kernel), "f")
    return x, W, rng.standard_normal(channels, "f")


def doubles(*arrays):
    return [a.astype("d") for a in arrays]


def weight_gradient(x, gy, kernel, stride, pad, dilate):
    """One kernel element after the other."""
    gW = np.zeros((x.shape[1], 1, *kernel))
    for offset, elements in windows.kernel_elements(x, kernel, stride, pad, dilate):
        terms = np.moveaxis(elements * gy, 1, 0)
        gW[(slice(None), 0, *offset)] = terms.reshape(len(terms), -1).sum(1)
    return gW


def channels_last(x):
    return np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("order", [np.array, channels_last])
@pytest.mark.parametrize("channels, kernel, stride, pad, dilate, extents", CASES)
def test_all_passes(channels, kernel, stride, pad, dilate, extents, order, dtype):
    x, W, b = (a.astype(dtype) for a in operands(channels, kernel, extents))
    window = {"stride": stride, "pad": pad, "dilate": dilate, "groups": channels}
    images, filters = renga.Variable(order(x)), renga.Variable(W)
    y = F.convolution_nd(images, filters, b, **window)
    hold(y.array, windows.convolution(*doubles(x, W, b), **window))
    gy = np.random.default_rng(1).standard_normal(y.shape).astype(dtype)
    y.grad = order(gy)
    y.backward()
    hold(
        images.grad,
        windows.deconvolution(*doubles(gy, W), outsize=extents, **window),
    )
    exact = weight_gradient(*doubles(x, gy), kernel, stride, pad, dilate)
    hold(filters.grad, exact)


def test_transposed_with_a_bias():
    x, W, b = operands(40, (4, 4), (5, 6))
    window = {"stride": 2, "pad": 1, "groups": 40}
    expected = windows.deconvolution(*doubles(x, W, b), **window)
    hold(F.deconvolution_2d(x, W, b, **window).array, expected)


def test_any_order_of_memory_and_number_of_threads():
    x, W, b = operands(48, (3, 3), (6, 21), batch=40)
    last = x.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)

    def value_and_gradient(images):
        filters = renga.Variable(W)
        y = F.convolution_2d(images, filters, b, pad=1, groups=48)
        y.grad = y.array
        y.backward()
        return y.array, filters.grad

    both = on_threads(lambda: [value_and_gradient(images) for images in (x, last)])
    results = [each for pair in both for each in pair]
    hold(results[0][0], windows.convolution(*doubles(x, W, b), pad=1, groups=48))
    for y, gW in results[1:]:
        np.testing.assert_array_equal(y, results[0][0])
        np.testing.assert_array_equal(gW, results[0][1])


def test_bfloat16_images():
    x, W, b = operands(40, (3, 3), (8, 18))
    with renga.using_config("dtype", renga.mixed_bfloat16):
        filters = renga.Variable(W)
        y = F.convolution_2d(renga.Variable(x), filters, b, pad=1, groups=40)
        hold(
            y.array,
            windows.convolution(*doubles(x, W, b), pad=1, groups=40),
            tolerance=8e-3,
        )
        y.grad = y.array
        y.backward()
    assert filters.grad.dtype == np.float32
    exact = weight_gradient(*doubles(x, y.array), (3, 3), 1, 1, 1)
    hold(filters.grad, exact, tolerance=8e-3)


@pytest.mark.parametrize("kernel", [(3, 3), (2, 3, 3)])
def test_several_filters_for_each_channel(kernel):
    channels, count, extents = 12, 3, (6,) * len(kernel)
    rng = np.random.default_rng(0)
    x = channels_last(rng.standard_normal((2, channels, *extents)))
    W = rng.standard_normal((count * channels, 1, *kernel))
    window = {"pad": 1, "groups": channels}
    images, filters = renga.Variable(x), renga.Variable(W)
    y = F.convolution_nd(images, filters, **window)
    hold(y.array, windows.convolution(x, W, **window))
    y.grad = gy = np.random.default_rng(1).standard_normal(y.shape)
    y.backward()
    hold(images.grad, windows.deconvolution(gy, W, outsize=extents, **window))
    repeated = np.repeat(x, count, 1)
    hold(filters.grad, weight_gradient(repeated, gy, kernel, 1, 1, 1))


def test_volumes_on_threads():
    x, W, _ = operands(48, (3, 3, 3), (6, 9, 21), batch=5)

    def all_passes():
        images, filters = renga.Variable(channels_last(x)), renga.Variable(W)
        y = F.convolution_nd(images, filters, pad=1, groups=48)
        y.grad = y.array
        y.backward()
        return y.array, images.grad, filters.grad

    results = on_threads(all_passes)
    for each in results[1:]:
        for a, b in zip(each, results[0]):
            np.testing.assert_array_equal(a, b)
