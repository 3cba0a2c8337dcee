"""Convolutions of float64 against sums over kernel elements in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import kernels
from tests.links.cases import windows

EXACT = 1e-13

# The algorithm, channels of x and of y, groups, kernel, stride, pad, dilate, extents.
CASES = [
    ("im2col", 3, 6, 1, (3, 3), 1, 1, 1, (9, 17)),
    ("im2col", 8, 6, 2, (3, 3), 2, 1, 1, (9, 12)),
    ("im2col", 8, 16, 1, (1, 1), 1, 0, 1, (5, 7)),
    ("im2col", 8, 16, 4, (1, 1), 1, 0, 1, (5, 7)),
    ("im2col", 8, 16, 4, (1, 1), 2, 0, 1, (5, 7)),
    ("im2col", 5, 3, 1, (2, 5), (1, 2), (3, 1), (2, 3), (11, 16)),
    ("im2col", 2, 3, 1, (3, 3), 1, 5, 1, (3, 2)),
    ("im2col", 20, 30, 1, (3, 3), 1, 1, 1, (40, 41)),
    ("im2col", 8, 16, 1, (2,), 1, 4, 4, (30,)),
    ("im2col", 6, 4, 2, (1,), 1, 0, 1, (900,)),
    ("im2col", 4, 6, 1, (3, 2, 3), (2, 1, 1), 1, 1, (6, 5, 7)),
    ("im2col", 4, 6, 2, (2, 2, 2), 1, (0, 1, 2), (2, 1, 3), (6, 5, 7)),
    ("grouped", 32, 32, 8, (3, 3), 1, 1, 1, (9, 17)),
    ("grouped", 8, 8, 4, (3, 2), 1, 1, (1, 2), (6, 5)),
    ("depthwise", 24, 24, 24, (3, 3), 1, 1, 1, (9, 17)),
    ("depthwise", 21, 21, 21, (5, 5), 2, 2, 1, (11, 12)),
    ("depthwise", 9, 9, 9, (7, 7), 1, 3, 1, (8, 9)),
    ("depthwise", 9, 9, 9, (4, 3), (3, 1), 1, (1, 2), (11, 12)),
    ("depthwise", 6, 18, 6, (3, 3), 1, 1, 1, (8, 9)),
    ("depthwise", 10, 20, 10, (3,), 2, 1, 1, (25,)),
]


def operands(inputs, outputs, groups, kernel, extents, channels_last):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, inputs, *extents))
    if channels_last:
        x = np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)
    W = rng.standard_normal((outputs, inputs // groups, *kernel))
    return x, W, rng.standard_normal(outputs)


def weight_gradient(x, gy, W, groups, stride, pad, dilate):
    """One kernel element after the other."""
    gW = np.zeros(W.shape)

    def by_groups(image):
        return image.reshape(len(image), groups, image.shape[1] // groups, -1)

    for offset, elements in windows.kernel_elements(
        x, W.shape[2:], stride, pad, dilate
    ):
        pairs = np.einsum("ngop,ngip->goi", by_groups(gy), by_groups(elements))
        gW[(..., *offset)] = pairs.reshape(W.shape[:2])
    return gW


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    "algorithm, inputs, outputs, groups, kernel, stride, pad, dilate, extents", CASES
)
def test_all_passes(
    algorithm,
    inputs,
    outputs,
    groups,
    kernel,
    stride,
    pad,
    dilate,
    extents,
    channels_last,
):
    kernels.forget()
    x, W, b = operands(inputs, outputs, groups, kernel, extents, channels_last)
    window = {"stride": stride, "pad": pad, "dilate": dilate, "groups": groups}
    images, filters = renga.Variable(x), renga.Variable(W)
    y = F.convolution_nd(images, filters, b, **window)
    windows.hold(y.array, windows.convolution(x, W, b, **window), EXACT)
    assert set(kernels.choices().values()) == {algorithm}
    y.grad = gy = np.random.default_rng(1).standard_normal(y.shape)
    y.backward()
    expected = windows.deconvolution(gy, W, outsize=extents, **window)
    windows.hold(images.grad, expected, EXACT)
    windows.hold(filters.grad, weight_gradient(x, gy, W, **window), EXACT)


@pytest.mark.parametrize(
    "inputs, outputs, groups, kernel, stride",
    [
        (6, 4, 1, (4, 4), 2),
        (6, 4, 2, (3, 3), 1),
        (8, 8, 1, (1, 1), 1),
        (8, 8, 2, (4, 3), 1),
        (5, 5, 5, (3, 3), 1),
        (10, 5, 5, (3, 3), 2),
    ],
)
def test_transposed_with_a_bias(inputs, outputs, groups, kernel, stride):
    x, W, _ = operands(outputs, inputs, groups, kernel, (6, 7), False)
    x = np.random.default_rng(2).standard_normal((3, inputs, 6, 7))
    b = np.random.default_rng(3).standard_normal(outputs)
    window = {"stride": stride, "pad": 0, "groups": groups}
    expected = windows.deconvolution(x, W, b, **window)
    windows.hold(F.deconvolution_2d(x, W, b, **window).array, expected, EXACT)
