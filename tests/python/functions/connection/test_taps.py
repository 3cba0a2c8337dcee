"""Convolutions by kernels along one axis, as products, against NumPy in float64."""

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

# channels of x and y, kernel, pad, dilate, extents
CASES = [
    (33, 24, (2,), (0,), (1,), (40,)),
    (32, 24, (2,), (0,), (16,), (50,)),
    (40, 24, (3,), (1,), (1,), (1,)),
    (32, 24, (3,), (7,), (2,), (5,)),
    (64, 33, (5,), (2,), (3,), (3000,)),
    (32, 25, (1, 3), (0, 2), (1, 1), (1, 30)),
    (32, 24, (3, 1), (1, 0), (2, 1), (9, 7)),
    (35, 24, (3, 1, 1), (1, 0, 0), (1, 1, 1), (4, 5, 6)),
    (32, 24, (2, 1, 1), (0, 0, 0), (3, 1, 1), (8, 30, 20)),
]


@pytest.fixture(autouse=True)
def taps() -> Iterator[None]:
    with convolutions_by("taps"):
        yield


def weight_gradient(x, gy, kernel, pad, dilate):
    """One tap after the other."""
    gW = np.zeros((gy.shape[1], x.shape[1], *kernel))
    for tap, elements in windows.kernel_elements(x, kernel, 1, pad, dilate):
        pixels = gy.reshape(*gy.shape[:2], -1), elements.reshape(*x.shape[:2], -1)
        gW[(..., *tap)] = np.einsum("nop,nip->oi", *pixels)
    return gW


def gradient_of(x, inputs, outputs, kernel, pad, dilate):
    rng = np.random.default_rng(0)
    filters = renga.Variable(rng.standard_normal((outputs, inputs, *kernel), "f"))
    y = F.convolution_nd(x, filters, pad=pad, dilate=dilate)
    y.grad = gy = rng.standard_normal(y.shape, "f")
    kernels.forget()
    y.backward()
    return filters.grad, gy


@pytest.mark.parametrize("inputs, outputs, kernel, pad, dilate, extents", CASES)
@pytest.mark.parametrize("channels_last", [False, True])
def test_weight_gradients(inputs, outputs, kernel, pad, dilate, extents, channels_last):
    x = np.random.default_rng(1).standard_normal((3, inputs, *extents), "f")
    if channels_last:
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    gW, gy = gradient_of(x, inputs, outputs, kernel, pad, dilate)
    hold(gW, weight_gradient(x.astype("d"), gy.astype("d"), kernel, pad, dilate))
    # These were computed by other kernels if it did not apply.
    assert not kernels.choices()


@pytest.mark.parametrize(
    "kernel, pad, extents",
    [((2, 2), (0, 0), (5, 6)), ((1, 3), (0, 1), (4, 6)), ((3, 1), (1, 1), (6, 5))],
)
def test_kernels_that_slide_along_other_axes_have_other_gradients(kernel, pad, extents):
    x = np.random.default_rng(1).standard_normal((2, 32, *extents), "f")
    gW, gy = gradient_of(x, 32, 24, kernel, pad, (1, 1))
    hold(gW, weight_gradient(x.astype("d"), gy.astype("d"), kernel, pad, (1, 1)))
    assert kernels.choices() and "taps" not in kernels.choices().values()


# Parts of which all pixels have a tap, have none in common, or lack one.
DISTANT = [
    (32, 24, (2,), (0,), (300,), (700,)),
    (40, 33, (3,), (150,), (150,), (420,)),
    (32, 24, (3,), (400,), (400,), (300,)),
    (33, 24, (2,), (200,), (300,), (250,)),
    (32, 25, (2,), (0,), (256,), (3000,)),
    (35, 24, (3, 1), (128, 0), (129, 1), (200, 2)),
]


@pytest.mark.parametrize("inputs, outputs, kernel, pad, dilate, extents", DISTANT)
def test_images_of_distant_taps(inputs, outputs, kernel, pad, dilate, extents):
    rng = np.random.default_rng(1)
    x, b, given = (
        rng.standard_normal(shape, "f")
        for shape in ((3, inputs, *extents), outputs, inputs)
    )
    W = rng.standard_normal((outputs, inputs, *kernel), "f")
    window = {"pad": pad, "dilate": dilate}
    y = F.convolution_nd(x, W, b, **window)
    hold(y.array, windows.convolution(*(a.astype("d") for a in (x, W, b)), **window))
    gy = rng.standard_normal(y.shape, "f")
    gx = F.deconvolution_nd(gy, W, given, outsize=extents, **window)
    wide = (a.astype("d") for a in (gy, W, given))
    hold(gx.array, windows.deconvolution(*wide, outsize=extents, **window))
