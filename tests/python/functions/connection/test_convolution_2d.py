"""convolution_2d and deconvolution_2d against scipy.signal and each other."""

import numpy as np
import pytest
import scipy.signal

import renga
import renga.functions as F
from renga import gradient_check
from renga.utils.type_check import InvalidType

WINDOWS = [
    dict(),
    dict(stride=2, pad=1),
    dict(stride=(1, 3), pad=(2, 0)),
    dict(dilate=(2, 1), pad=1),
    dict(stride=2, groups=2),
    dict(stride=(3, 2), cover_all=True),
    dict(stride=2, pad=1, dilate=2, groups=2, cover_all=True),
]


def pair(value):
    return value if isinstance(value, tuple) else (value, value)


def correlated(x, W, stride=1, pad=0, dilate=1, groups=1, cover_all=False):
    """SciPy's correlations, subsampled by the strides."""
    (sy, sx), (py, px), (dy, dx) = pair(stride), pair(pad), pair(dilate)
    spread = np.zeros(
        W.shape[:2] + ((W.shape[2] - 1) * dy + 1, (W.shape[3] - 1) * dx + 1)
    )
    spread[:, :, ::dy, ::dx] = W
    more = (sy - 1, sx - 1) if cover_all else (0, 0)
    x = np.pad(x, [(0, 0), (0, 0), (py, py + more[0]), (px, px + more[1])])
    inputs, outputs = W.shape[1], W.shape[0] // groups
    y = [
        sum(
            scipy.signal.correlate(
                image[o // outputs * inputs + i], spread[o, i], "valid", "direct"
            )
            for i in range(inputs)
        )
        for image in x
        for o in range(W.shape[0])
    ]
    return np.reshape(y, (len(x), len(W), *y[0].shape))[:, :, ::sy, ::sx]


def operands(window, dtype="d", channels=4, outputs=6):
    rng = np.random.RandomState(0)
    groups = window.get("groups", 1)
    x = rng.uniform(-1, 1, (2, channels, 8, 9)).astype(dtype)
    W = rng.uniform(-1, 1, (outputs, channels // groups, 3, 2)).astype(dtype)
    return x, W, rng.uniform(-1, 1, outputs).astype(dtype)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("dtype, tolerance", [("d", 1e-13), ("f", 1e-5), ("e", 1e-2)])
def test_convolution(window, dtype, tolerance):
    x, W, b = operands(window, dtype)
    y = F.convolution_2d(x, W, b, **window)
    assert y.dtype == dtype
    expected = correlated(x.astype("d"), W.astype("d"), **window)
    expected += b.astype("d")[:, None, None]
    np.testing.assert_allclose(y.array, expected, tolerance, 10 * tolerance)


@pytest.mark.parametrize("window", WINDOWS)
def test_gradients_of_convolution(window):
    x, W, b = operands(window)

    def convolution(x, W, b):
        return F.convolution_2d(x, W, b, **window)

    gy = np.random.RandomState(1).uniform(-1, 1, convolution(x, W, b).shape)
    gradient_check.check_backward(convolution, (x, W, b), gy, dtype="d")
    ggs = [
        np.random.RandomState(i).uniform(-1, 1, a.shape)
        for i, a in enumerate((x, W, b))
    ]
    gradient_check.check_double_backward(
        convolution, (x, W, b), gy, tuple(ggs), dtype="d"
    )


@pytest.mark.parametrize("window", WINDOWS)
def test_deconvolution_is_the_transpose(window):
    """<conv(x), y> = <x, deconv(y)>, for all output sizes that the strides allow."""
    x, W, _ = operands(window)
    y = np.random.RandomState(1).uniform(-1, 1, F.convolution_2d(x, W, **window).shape)
    options = {k: v for k, v in window.items() if k != "cover_all"}
    back = F.deconvolution_2d(y, W, outsize=x.shape[2:], **options)
    assert back.shape == x.shape
    expected = (correlated(x, W, **window) * y).sum()
    np.testing.assert_allclose((x * back.array).sum(), expected, 1e-12)


@pytest.mark.parametrize("pad", [(0, 0), (2, 0), (3, 5)])
@pytest.mark.parametrize("channels, outputs", [(3, 2), (8, 3), (5, 1)])
def test_input_gradients_of_large_kernels(channels, outputs, pad):
    """They are full correlations, which read many pixels beyond an image."""
    rng = np.random.RandomState(0)
    x = renga.Variable(rng.uniform(-1, 1, (2, channels, 24, 20)).astype("f"))
    W = rng.uniform(-1, 1, (outputs, channels, 11, 9)).astype("f")
    y = F.convolution_2d(x, W, pad=pad)
    y.grad = gy = rng.uniform(-1, 1, y.shape).astype("f")
    y.backward()
    turned = W.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1].astype("d")
    expected = correlated(gy.astype("d"), turned, pad=(10 - pad[0], 8 - pad[1]))
    np.testing.assert_allclose(x.grad, expected, 1e-5, 1e-4)


def test_gradients_of_deconvolution():
    rng = np.random.RandomState(0)
    x, W, b = (rng.uniform(-1, 1, s) for s in ((2, 4, 3, 4), (4, 3, 3, 2), (6,)))

    def deconvolution(x, W, b):
        return F.deconvolution_2d(
            x, W, b, stride=(2, 3), pad=1, outsize=(6, 10), groups=2
        )

    gy = rng.uniform(-1, 1, (2, 6, 6, 10))
    gradient_check.check_backward(deconvolution, (x, W, b), gy, dtype="d")
    ggs = tuple(rng.uniform(-1, 1, a.shape) for a in (x, W, b))
    gradient_check.check_double_backward(deconvolution, (x, W, b), gy, ggs, dtype="d")


def test_third_derivative():
    """sum(conv(x, W + t V)³) has the third derivative 6 sum(conv(x, V)³) in t."""
    x, W, _ = operands({})
    V = np.random.RandomState(1).uniform(-1, 1, W.shape)
    t = renga.Variable(np.array(0.3))
    y = F.sum(F.convolution_2d(x, W + F.broadcast_to(t, V.shape) * V) ** 3)
    for _ in range(3):
        (y,) = renga.grad([y], [t], enable_double_backprop=True)
    np.testing.assert_allclose(y.array, 6 * (correlated(x, V) ** 3).sum(), 1e-10)


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_any_strides(dtype):
    x, W, _ = operands({}, dtype)
    expected = correlated(x.astype("d"), W.astype("d"))
    turned = np.ascontiguousarray(x[:, ::-1, :, ::-1].transpose(3, 0, 2, 1))
    odd_x = turned.transpose(1, 3, 2, 0)[:, ::-1, :, ::-1]
    odd_W = np.ascontiguousarray(W[..., ::-1])[..., ::-1]
    channels_last = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for image in (odd_x, channels_last):
        np.testing.assert_array_equal(image, x)
        y = F.convolution_2d(image, odd_W)
        np.testing.assert_allclose(y.array, expected, 1e-5, 1e-5)
    stretched = np.broadcast_to(x[:1], x.shape)
    y = F.convolution_2d(stretched, W)
    np.testing.assert_allclose(y.array[1], expected[0], 1e-5, 1e-5)


def test_result_is_in_the_dtype_of_x():
    x, W, _ = operands({})
    for a, b in (("f", "e"), ("e", "f"), ("d", "f")):
        W_b = renga.Variable(W.astype(b))
        y = F.convolution_2d(x.astype(a), W_b)
        y.grad = np.ones(y.shape, a)
        y.backward()
        assert y.dtype == a
        assert W_b.grad.dtype == b


def test_no_images():
    _, W, b = operands({}, "f")
    W, b = renga.Variable(W), renga.Variable(b)
    y = F.convolution_2d(np.empty((0, 4, 8, 9), "f"), W, b)
    assert y.shape == (0, 6, 6, 8)
    y.grad = np.empty(y.shape, "f")
    y.backward()
    np.testing.assert_array_equal(W.grad, np.zeros(W.shape))
    np.testing.assert_array_equal(b.grad, np.zeros(6))
    assert F.deconvolution_2d(y, W).shape == (0, 4, 8, 9)


def test_threads_of_python_convolve_side_by_side():
    from concurrent.futures import ThreadPoolExecutor

    x, W, _ = operands({}, "f")
    xs = [x * k for k in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        ys = list(pool.map(lambda x: F.convolution_2d(x, W, pad=1).array, xs))
    for k, y in enumerate(ys, 1):
        expected = correlated(x.astype("d"), W.astype("d"), pad=1)
        np.testing.assert_allclose(y, k * expected, 1e-4, 1e-4)


@pytest.mark.parametrize(
    "error, call",
    [
        (InvalidType, lambda x, W, b: F.convolution_2d(x[0], W)),
        (InvalidType, lambda x, W, b: F.convolution_2d(x.astype("i"), W)),
        (InvalidType, lambda x, W, b: F.convolution_2d(x, W[:, :3])),
        (InvalidType, lambda x, W, b: F.convolution_2d(x, W, b[:5])),
        (InvalidType, lambda x, W, b: F.convolution_2d(x, W, b.astype("f"))),
        (InvalidType, lambda x, W, b: F.convolution_2d(x, W, dilate=4)),
        (InvalidType, lambda x, W, b: F.convolution_2d(x, W, groups=2)),
        (ValueError, lambda x, W, b: F.convolution_2d(x, W, stride=0)),
        (ValueError, lambda x, W, b: F.convolution_2d(x, W, pad=-1)),
        (ValueError, lambda x, W, b: F.convolution_2d(x, W, groups=0)),
        (TypeError, lambda x, W, b: F.convolution_2d(x, W, strides=1)),
        (InvalidType, lambda x, W, b: F.deconvolution_2d(x, W)),
        (InvalidType, lambda x, W, b: F.deconvolution_2d(x, W[:4], outsize=(3, 3))),
        (InvalidType, lambda x, W, b: F.deconvolution_2d(x, W[:4], pad=9)),
    ],
)
def test_refuses(error, call):
    with pytest.raises(error):
        call(*operands({}))
