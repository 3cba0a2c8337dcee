"""Convolutions to images of few channels by matrix products, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import _core, kernels
from tests.links.cases import windows
from tests.links.cases.algorithms import convolutions_by
from tests.links.cases.windows import hold
from tests.threads import on_threads

# channels, those of the result, kernel, stride, pad, dilate, extents
CASES = [
    (64, 3, (3, 3), 1, 1, 1, (8, 8)),
    (32, 1, (5, 5), 1, 2, 1, (7, 9)),
    (20, 16, (3, 3), (2, 1), (0, 1), 1, (6, 9)),
    (40, 3, (7, 7), 2, 3, 1, (9, 8)),
    (33, 2, (4, 4), 2, 1, 1, (5, 5)),
    (8, 5, (3, 2), 1, (2, 1), (2, 3), (9, 10)),
    (32, 3, (2, 2), 3, 0, 1, (8, 11)),
    (32, 4, (1, 1), 1, 0, 1, (3, 3)),
    (3, 7, (1, 6), 1, (0, 3), 1, (1, 9)),
]


@pytest.fixture(autouse=True)
def gemm() -> Iterator[None]:
    with convolutions_by("gemm"):
        yield


def operands(channels, thin, kernel, extents, batch=3):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, channels, *extents), "f")
    W = rng.standard_normal((thin, channels, *kernel), "f")
    return x, W, rng.standard_normal(thin, "f")


@pytest.mark.parametrize("channels, thin, kernel, stride, pad, dilate, extents", CASES)
def test_forward_and_transposed(channels, thin, kernel, stride, pad, dilate, extents):
    x, W, b = operands(channels, thin, kernel, extents)
    window = {"stride": stride, "pad": pad, "dilate": dilate}
    exact = [a.astype("d") for a in (x, W, b)]
    hold(
        F.convolution_2d(x, W, b, **window).array, windows.convolution(*exact, **window)
    )
    turned = W.swapaxes(0, 1)
    exact[1] = turned.astype("d")
    hold(
        F.deconvolution_2d(x, turned, b, **window).array,
        windows.deconvolution(*exact, **window),
    )


def test_gradient_of_a_thin_image():
    gy, W, _ = operands(64, 3, (4, 4), (5, 6))
    x = renga.Variable(np.zeros((3, 3, 10, 12), "f"))
    y = F.convolution_2d(x, W.swapaxes(0, 1), stride=2, pad=1)
    y.grad = gy
    y.backward()
    exact = windows.deconvolution(
        gy.astype("d"), W.swapaxes(0, 1).astype("d"), stride=2, pad=1
    )
    hold(x.grad, exact)


def test_windows_past_the_padding():
    x, W, _ = operands(32, 3, (4, 4), (7, 7))
    y = F.convolution_2d(x, W, stride=2, cover_all=True)
    covered = np.pad(x.astype("d"), [(0, 0), (0, 0), (0, 1), (0, 1)])
    hold(y.array, windows.convolution(covered, W.astype("d"), stride=2))


def test_any_order_of_memory_and_number_of_threads():
    x, W, b = operands(64, 3, (3, 3), (6, 9), batch=40)
    last = x.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)
    expected = windows.convolution(*(a.astype("d") for a in (x, W, b)), pad=1)
    both = on_threads(
        lambda: [F.convolution_2d(a, W, b, pad=1).array for a in (x, last)]
    )
    results = [y for ys in both for y in ys]
    hold(results[0], expected)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_bfloat16_images():
    x, W, b = operands(64, 3, (3, 3), (8, 8))
    with renga.using_config("dtype", renga.mixed_bfloat16):
        y = F.convolution_2d(renga.Variable(x), W, b, pad=1)
    exact = windows.convolution(*(a.astype("d") for a in (x, W, b)), pad=1)
    hold(y.array, exact, tolerance=4e-3)


@pytest.mark.parametrize("thin, kernel", [(3, "gemm"), (16, "direct")])
def test_the_kernel_is_selected_for_few_channels(thin, kernel):
    _core.use_convolution_kernel("auto")
    x, W, _ = operands(64, thin, (3, 3), (32, 32))
    kernels.forget()
    F.convolution_2d(x, W, pad=1)
    assert list(kernels.choices().values()) == [kernel]
