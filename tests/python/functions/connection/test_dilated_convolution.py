"""Dilated convolutions by Winograd's algorithm against NumPy in float64."""

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

# channels of x and y, pad, dilate, extents
CASES = [
    (32, 32, 2, 2, (12, 16)),
    (32, 64, 3, 3, (9, 15)),
    (64, 32, (4, 0), (4, 2), (8, 12)),
    (32, 32, (1, 4), (1, 4), (7, 8)),
    (32, 32, (4, 2), 2, (4, 6)),
    (32, 32, 2, 2, (12, 15)),
    (32, 64, (3, 0), (3, 2), (10, 9)),
    (32, 32, (5, 4), (5, 4), (3, 5)),
]


@pytest.fixture(autouse=True)
def dilated() -> Iterator[None]:
    with convolutions_by("dilated"):
        yield


def doubles(*arrays):
    return [a.astype("d") for a in arrays]


@pytest.mark.parametrize("inputs, outputs, pad, dilate, extents", CASES)
@pytest.mark.parametrize("channels_last", [False, True])
def test_all_passes(inputs, outputs, pad, dilate, extents, channels_last):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, inputs, *extents), "f")
    if channels_last:
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    W = rng.standard_normal((outputs, inputs, 3, 3), "f") / 17
    b = rng.standard_normal(outputs, "f")
    window = {"stride": 1, "pad": pad, "dilate": dilate}
    images, filters = renga.Variable(x), renga.Variable(W)
    y = F.convolution_2d(images, filters, b, **window)
    hold(y.array, windows.convolution(*doubles(x, W, b), **window))
    gy = rng.standard_normal(y.shape, "f")
    y.grad = gy
    y.backward()
    hold(
        images.grad,
        windows.deconvolution(*doubles(gy, W), outsize=extents, **window),
    )
    gW = np.zeros(W.shape)
    for (i, j), elements in windows.kernel_elements(x, (3, 3), **window):
        gW[:, :, i, j] = np.einsum("nohw,nihw->oi", gy.astype("d"), elements)
    hold(filters.grad, gW)
    # These were computed by other kernels if it did not apply.
    assert not kernels.choices()


def test_padding_that_dilations_do_not_divide_has_other_kernels():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 32, 12, 16), "f")
    W = rng.standard_normal((32, 32, 3, 3), "f") / 17
    y = F.convolution_2d(x, W, pad=1, dilate=2)
    hold(y.array, windows.convolution(*doubles(x, W), pad=1, dilate=2))
    assert "dilated" not in kernels.choices().values()
    assert kernels.choices()
