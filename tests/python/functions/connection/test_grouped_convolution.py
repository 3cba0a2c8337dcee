"""Convolutions of groups of few channels against NumPy in float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import kernels
from tests.links.cases import windows
from tests.links.cases.algorithms import convolutions_by
from tests.links.cases.windows import hold

# groups, channels of a group, kernel, stride, pad, dilate, extents
CASES = [
    (8, 4, (3, 3), 1, 1, 1, (9, 17)),
    (4, 2, (3, 3), 1, 1, 1, (7, 12)),
    (3, 8, (3, 3), 1, 1, 1, (8, 5)),
    (2, 4, (1, 1), 1, 0, 1, (4, 3)),
    (4, 4, (5, 2), 1, (1, 3), (2, 1), (11, 9)),
    (5, 8, (2, 7), 1, (0, 3), (1, 3), (6, 30)),
    (8, 4, (3, 3), 2, 1, 1, (9, 12)),
    (12, 2, (4, 3), (3, 1), (2, 0), 1, (10, 8)),
    (2, 4, (3, 3), 1, 4, 1, (3, 2)),
    (2, 8, (3, 3), 1, 1, 1, (130, 70)),
]


@pytest.fixture(autouse=True)
def grouped() -> Iterator[None]:
    with convolutions_by("grouped"):
        yield


def operands(groups, size, kernel, extents, batch=3):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, groups * size, *extents), "f")
    W = rng.standard_normal((groups * size, size, *kernel), "f")
    return x, W, rng.standard_normal(groups * size, "f")


def doubles(*arrays):
    return [a.astype("d") for a in arrays]


def weight_gradient(x, gy, groups, kernel, stride, pad, dilate):
    """One kernel element after the other."""
    batch, channels, *extents = gy.shape
    size = channels // groups
    gW = np.zeros((channels, size, *kernel))
    grads = gy.reshape(batch, groups, size, *extents)
    for (i, j), elements in windows.kernel_elements(x, kernel, stride, pad, dilate):
        pixels = elements.reshape(batch, groups, size, *extents)
        pairs = np.einsum("ngohw,ngihw->goi", grads, pixels)
        gW[:, :, i, j] = pairs.reshape(channels, size)
    return gW


@pytest.mark.parametrize("groups, size, kernel, stride, pad, dilate, extents", CASES)
def test_all_passes(groups, size, kernel, stride, pad, dilate, extents):
    x, W, b = operands(groups, size, kernel, extents)
    window = {"stride": stride, "pad": pad, "dilate": dilate, "groups": groups}
    images, filters = renga.Variable(x), renga.Variable(W)
    y = F.convolution_2d(images, filters, b, **window)
    hold(y.array, windows.convolution(*doubles(x, W, b), **window))
    gy = np.random.default_rng(1).standard_normal(y.shape, "f")
    y.grad = gy
    y.backward()
    hold(
        images.grad,
        windows.deconvolution(*doubles(gy, W), outsize=extents, **window),
    )
    exact = weight_gradient(*doubles(x, gy), groups, kernel, stride, pad, dilate)
    hold(filters.grad, exact)


def test_transposed_with_a_bias():
    x, W, b = operands(8, 4, (4, 4), (5, 6))
    window = {"stride": 1, "pad": 1, "groups": 8}
    expected = windows.deconvolution(*doubles(x, W, b), **window)
    hold(F.deconvolution_2d(x, W, b, **window).array, expected)


def test_the_sum_of_many_samples():
    x, W, _ = operands(2, 4, (3, 3), (4, 5), batch=35)
    filters = renga.Variable(W)
    y = F.convolution_2d(x, filters, pad=1, groups=2)
    gy = np.random.default_rng(1).standard_normal(y.shape, "f")
    y.grad = gy
    y.backward()
    hold(filters.grad, weight_gradient(*doubles(x, gy), 2, (3, 3), 1, 1, 1))


@pytest.mark.parametrize("groups, size", [(3, 2), (2, 3), (1, 8), (2, 16)])
def test_other_groups_are_computed_by_other_kernels(groups, size):
    kernels.forget()
    x, W, b = operands(groups, size, (3, 3), (5, 6))
    y = F.convolution_2d(x, W, b, pad=1, groups=groups)
    hold(y.array, windows.convolution(*doubles(x, W, b), pad=1, groups=groups))
    assert "grouped" not in kernels.choices().values()
