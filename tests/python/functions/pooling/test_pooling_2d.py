"""max_pooling_2d and average_pooling_2d against windows in NumPy."""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import gradient_check
from renga.utils.type_check import InvalidType

# Arguments of both poolings: the window fits, overlaps, leaves gaps, sticks out.
WINDOWS = [
    dict(ksize=2),
    dict(ksize=3, stride=2, pad=1),
    dict(ksize=(2, 3), stride=(1, 2), pad=(0, 2)),
    dict(ksize=1, stride=(3, 2)),
    dict(ksize=(4, 2), stride=4, pad=3),
]


def pair(value):
    return value if isinstance(value, tuple) else (value, value)


def windows(x, ksize, stride=None, pad=0, cover_all=False, fill=-np.inf):
    """Every window of the padded image, one after the other: (N, C, H', W', kh kw)."""
    (ky, kx), (sy, sx), (py, px) = pair(ksize), pair(stride or ksize), pair(pad)
    after = (sy - 1, sx - 1) if cover_all else (0, 0)
    x = np.pad(
        x,
        [(0, 0), (0, 0), (py, py + after[0]), (px, px + after[1])],
        constant_values=fill,
    )
    rows = [
        [
            x[:, :, i : i + ky, j : j + kx].reshape(*x.shape[:2], -1)
            for j in range(0, x.shape[3] - kx + 1, sx)
        ]
        for i in range(0, x.shape[2] - ky + 1, sy)
    ]
    return np.array(rows).transpose(2, 3, 0, 1, 4)


def layouts(x):
    """The same image in the orders of memory that kernels treat differently."""
    yield x
    yield np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    yield np.ascontiguousarray(x[:, :, ::-1].transpose(2, 0, 3, 1)).transpose(
        1, 3, 0, 2
    )[:, :, ::-1]


def image(dtype="d", channels=19):
    return np.random.RandomState(0).permutation(2 * channels * 63).reshape(
        2, channels, 9, 7
    ).astype(dtype) / (32 * channels)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("dtype", ["d", "f", "e"])
@pytest.mark.parametrize("cover_all", [False, True])
def test_max(window, dtype, cover_all):
    x = image(dtype)
    expected = windows(x, **window, cover_all=cover_all)
    for view in layouts(x):
        y, at = F.max_pooling_2d(
            view, **window, cover_all=cover_all, return_indices=True
        )
        np.testing.assert_array_equal(y.array, expected.max(-1))
        inside = np.isfinite(expected.max(-1))
        np.testing.assert_array_equal(at[inside], expected.argmax(-1)[inside])
        assert y.dtype == dtype


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("dtype, tolerance", [("d", 1e-15), ("f", 1e-6), ("e", 1e-3)])
def test_average(window, dtype, tolerance):
    x = image(dtype)
    expected = windows(x.astype("d"), **window, fill=0).mean(-1)
    for view in layouts(x):
        y = F.average_pooling_2d(view, **window)
        np.testing.assert_allclose(y.array, expected, tolerance, tolerance)
        assert y.dtype == dtype


@pytest.mark.parametrize("channels", [64, 70, 136])
def test_average_of_many_channels(channels):
    x = np.random.RandomState(0).randn(1, channels, 7, 7).astype("f")
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    y = F.average_pooling_2d(last, 7)
    np.testing.assert_allclose(y.array[..., 0, 0], x.mean((2, 3)), 1e-4, 1e-6)


def max_pooling_within(x, **window):
    return F.max_pooling_2d(x, **window, cover_all=False)


@pytest.mark.parametrize("window", WINDOWS[:4])
@pytest.mark.parametrize("pooling", [max_pooling_within, F.average_pooling_2d])
def test_gradients(window, pooling):
    x = image(channels=5)
    rng = np.random.RandomState(1)
    gy = rng.uniform(-1, 1, pooling(x, **window).shape)
    ggx = rng.uniform(-1, 1, x.shape)
    for view in layouts(x):
        for g in layouts(gy):
            gradient_check.check_backward(
                lambda x: pooling(x, **window), view, g, eps=1e-4, dtype="d"
            )
        gradient_check.check_double_backward(
            lambda x: pooling(x, **window), view, gy, ggx, eps=1e-4, dtype="d"
        )


def test_windows_in_the_padding_get_no_gradient():
    for view in layouts(image("f")):
        x = renga.Variable(view)
        y = F.max_pooling_2d(x, 2, 2, 3, cover_all=False)
        assert np.isneginf(y.array).any()
        y.grad = np.ones(y.shape, "f")
        y.backward()
        assert x.grad.sum() == np.isfinite(y.array).sum()


def test_large_windows_have_large_indices():
    x = np.tile(image(), (1, 1, 3, 4))
    x += np.arange(x.shape[2])[:, None] * 100
    y, at = F.max_pooling_2d(x, 20, 7, return_indices=True)
    expected = windows(x, 20, 7, cover_all=True)
    np.testing.assert_array_equal(y.array, expected.max(-1))
    np.testing.assert_array_equal(at, expected.argmax(-1))
    assert at.max() > 255


def test_pooling_windows_of_the_image_size():
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 7))
    v = renga.Variable(x)
    y = F.max_pooling_2d(v, (6, 7))
    y.grad = np.ones(y.shape)
    y.backward()
    np.testing.assert_array_equal(v.grad, x == x.max((2, 3), keepdims=True))


def test_nan_and_equal_elements():
    x = np.zeros((1, 3, 2, 4), "f")
    x[0, 1, 1, 0] = np.nan
    for view in layouts(x):
        y, at = F.max_pooling_2d(view, 2, return_indices=True)
        np.testing.assert_array_equal(y.array[0, 1, 0], [np.nan, 0])
        np.testing.assert_array_equal(at[0, :, 0], [[0, 0], [2, 0], [0, 0]])


def test_output_keeps_the_order_of_memory():
    def order(array):
        return np.argsort(np.abs(array.strides))

    for view in layouts(image()):
        for y in (F.max_pooling_2d(view, 2), F.average_pooling_2d(view, 2)):
            np.testing.assert_array_equal(order(y.array), order(view))


def test_no_images():
    for pooling in (F.max_pooling_2d, F.average_pooling_2d):
        assert pooling(np.empty((0, 3, 4, 4), "f"), 2).shape == (0, 3, 2, 2)


@pytest.mark.parametrize("pooling", [F.max_pooling_2d, F.average_pooling_2d])
@pytest.mark.parametrize(
    "error, change, arguments",
    [
        ((InvalidType, ValueError), lambda x: x[0], (2,)),
        (InvalidType, lambda x: x.astype("i"), (2,)),
        (InvalidType, lambda x: x, (12, 1)),
        (ValueError, lambda x: x, (0,)),
        (ValueError, lambda x: x, (2, (1, 0))),
        (ValueError, lambda x: x, (2, 1, -1)),
    ],
)
def test_refuses(pooling, error, change, arguments):
    with pytest.raises(error):
        pooling(change(image()), *arguments)
