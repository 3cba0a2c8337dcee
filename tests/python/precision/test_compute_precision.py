"""``config.compute_precision``: errors against float64, in every pass."""

import threading

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import _core
from tests.python.functions.connection.test_winograd import (
    in_float64,
    in_renga,
    operands,
)

# Relative root mean square errors. One bfloat16 product of normal data rounds both
# factors, each by 1.7e-3; Winograd's transforms amplify that by up to 2.9.
BOUNDS = {"highest": 3e-6, "high": 2e-5, "medium": 3e-3}
WINOGRAD_BOUND = 8e-3


@pytest.fixture(params=sorted(BOUNDS))
def precision(request):
    _core.override_bf16x3(True)
    with renga.using_config("compute_precision", request.param):
        yield request.param
    _core.override_bf16x3(None)


@pytest.fixture(params=["direct", "winograd"])
def kernel(request):
    _core.use_convolution_kernel(request.param)
    yield request.param
    _core.use_convolution_kernel("auto")


def relative_error(actual, expected):
    assert actual.dtype == np.float32 and actual.shape == expected.shape
    return np.sqrt(np.mean((actual - expected) ** 2) / np.mean(expected**2))


@pytest.mark.parametrize(
    "batch, channels, filters, extents, stride, ksize",
    [
        (4, 32, 64, (9, 12), 1, 3),
        (8, 64, 32, (2, 2), 1, 3),
        (3, 64, 64, (12, 8), 2, 4),
        (3, 64, 64, (12, 9), 2, 3),
        (3, 24, 8, (7, 9), 1, 3),
    ],
)
def test_convolution(
    precision, kernel, batch, channels, filters, extents, stride, ksize
):
    arrays = operands(batch, channels, filters, extents, (1, 1), stride, ksize)
    bound = BOUNDS[precision]
    if precision == "medium" and kernel == "winograd":
        bound = WINOGRAD_BOUND
    expected = in_float64(*arrays, (1, 1), stride)
    for actual, exact in zip(in_renga(*arrays, (1, 1), stride), expected):
        assert relative_error(actual, exact) < bound


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("channels, filters", [(512, 96), (100, 600), (33, 64)])
def test_pointwise_convolution(precision, channels, filters, stride):
    rng = np.random.default_rng(0)
    x = renga.Variable(rng.standard_normal((3, channels, 13, 9), "f"))
    W = renga.Variable(rng.standard_normal((filters, channels, 1, 1), "f"))
    y = F.convolution_2d(x, W, None, stride)
    y.grad = gy = rng.standard_normal(y.shape, "f")
    y.backward()
    weights = W.array[:, :, 0, 0].astype("d")
    read = x.array[:, :, ::stride, ::stride].astype("d")
    gx = np.zeros(x.shape)
    gx[:, :, ::stride, ::stride] = np.einsum("oi,nohw->nihw", weights, gy)
    expected = [
        (y.array, np.einsum("oi,nihw->nohw", weights, read)),
        (x.grad, gx),
        (W.grad[:, :, 0, 0], np.einsum("nohw,nihw->oi", gy, read)),
    ]
    for actual, exact in expected:
        assert relative_error(actual, exact) < BOUNDS[precision]


@pytest.mark.parametrize("width, stride", [(1, 2), (2, 3), (3, 4)])
def test_images_narrower_than_a_stride(precision, width, stride):
    x, W = np.random.default_rng(0).normal(0, 1, (2, 2, 32, 5, 5)).astype("f")
    x, W = x[..., :width], W[..., :3]
    gradients = []
    for dtype in ("f", "d"):
        weights = renga.Variable(np.asarray(W, dtype))
        F.sum(F.convolution_2d(x.astype(dtype), weights, None, stride, 2)).backward()
        gradients.append(weights.grad)
    assert relative_error(*gradients) < BOUNDS[precision]


@pytest.mark.parametrize(
    "extents, ksize, pad",
    [
        ((2, 6, 3), (4, 4, 3), (2, 1, 1)),
        ((1, 5, 4), (3, 3, 2), (2, 1, 0)),
        ((1,), (5,), (2,)),
    ],
)
@pytest.mark.parametrize("stride, dilate", [(1, 1), (2, 2)])
def test_filters_larger_than_the_image(precision, extents, ksize, pad, stride, dilate):
    rng = np.random.default_rng(0)
    pad = tuple(p * dilate for p in pad)
    x = rng.normal(size=(2, 32, *extents)).astype("f")
    W = rng.normal(size=(16, 32, *ksize)).astype("f")
    found = []
    for dtype in ("f", "d"):
        weights = renga.Variable(W.astype(dtype))
        y = F.convolution_nd(x.astype(dtype), weights, None, stride, pad, dilate=dilate)
        gy = np.random.default_rng(1).normal(size=y.shape)
        found.append(renga.grad([y], [weights], [renga.Variable(gy.astype(dtype))])[0])
    # Sums of few products, whose errors hardly cancel.
    assert relative_error(found[0].array, found[1].array) < 2 * BOUNDS[precision]


def test_deconvolution(precision, kernel):
    gy, W, x = operands(3, 32, 64, (8, 8), (1, 1))
    gx, gy, W = renga.Variable(x), renga.Variable(gy), renga.Variable(W)
    y = F.deconvolution_2d(gx, W, pad=1)
    ggx, gW = renga.grad([y], [gx, W], [gy])
    exact_ggx, exact_y, exact_gW = in_float64(gy.array, W.array, x, (1, 1))
    bound = BOUNDS[precision] if precision != "medium" else WINOGRAD_BOUND
    assert relative_error(y.array, exact_y) < bound
    assert relative_error(ggx.array, exact_ggx) < bound
    assert relative_error(gW.array, exact_gW) < bound


@pytest.mark.parametrize("transa, transb", [(False, False), (True, True)])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_matmul(precision, batch, transa, transb):
    rng = np.random.default_rng(0)
    m, n, k = 70, 90, 110
    a = rng.standard_normal((*batch, *((k, m) if transa else (m, k))), "f")
    b = rng.standard_normal((*batch, *((n, k) if transb else (k, n))), "f")
    gy = rng.standard_normal((*batch, m, n), "f")
    x, W = renga.Variable(a), renga.Variable(b)
    y = F.matmul(x, W, transa, transb)
    gx, gW = renga.grad([y], [x, W], [renga.Variable(gy)])

    left, right = (v.astype("d") for v in (a, b))
    left = left.swapaxes(-1, -2) if transa else left
    right = right.swapaxes(-1, -2) if transb else right
    g_left, g_right = gy @ right.swapaxes(-1, -2), left.swapaxes(-1, -2) @ gy
    bound = BOUNDS[precision]
    assert relative_error(y.array, left @ right) < bound
    expected = g_left.swapaxes(-1, -2) if transa else g_left
    assert relative_error(gx.array, expected) < bound
    expected = g_right.swapaxes(-1, -2) if transb else g_right
    assert relative_error(gW.array, expected) < bound


def test_linear(precision):
    rng = np.random.default_rng(0)
    x, W = rng.standard_normal((64, 120), "f"), rng.standard_normal((80, 120), "f")
    b = rng.standard_normal(80).astype("f")
    y = F.linear(x, W, b)
    expected = x.astype("d") @ W.T.astype("d") + b
    assert relative_error(y.array, expected) < BOUNDS[precision]


def test_high_is_float32_where_that_is_faster():
    a, b = operands(2, 32, 32, (8, 8), (1, 1))[:2]
    _core.override_bf16x3(False)
    with renga.using_config("compute_precision", "high"):
        y = F.convolution_2d(a, b, pad=1)
    _core.override_bf16x3(None)
    np.testing.assert_array_equal(y.array, F.convolution_2d(a, b, pad=1).array)


def test_each_thread_has_its_own():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 128, 128), "f")
    exact = F.matmul(a, b).array
    found = []
    with renga.using_config("compute_precision", "medium"):
        thread = threading.Thread(target=lambda: found.append(F.matmul(a, b).array))
        thread.start()
        thread.join()
    np.testing.assert_array_equal(found[0], exact)


def test_unknown_precision_changes_nothing():
    with pytest.raises(ValueError, match="expected highest, high or medium, got low"):
        renga.config.compute_precision = "low"
    assert renga.config.compute_precision == "highest"
