"""Products and convolutions on tiles, on the portable ones where the CPU has none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import _core
from tests.rounding import as_bfloat16, rounded_to_bfloat16
from tests.threads import on_threads

UNITS = ["portable", *(["amx"] if _core.tile_unit() == "amx" else [])]


@pytest.fixture(autouse=True, params=UNITS)
def _tiles(request: pytest.FixtureRequest) -> Iterator[None]:
    _core.override_tile_unit(request.param)
    with renga.using_config("compute_precision", "medium"):
        yield
    _core.override_tile_unit(None)


def drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers that rounding to bfloat16 does not change."""
    return rounded_to_bfloat16(rng.standard_normal(shape, "f"))


def assert_near(found: np.ndarray, exact: np.ndarray, unit: float = 2e-6) -> None:
    scale = max(float(np.abs(exact).max()), 1e-30)
    np.testing.assert_allclose(found, exact, rtol=0, atol=unit * scale)


# Few rows, rows that are no whole tiles, columns of one tile, depths beyond one part
# of the second-level and of the first-level cache, columns beyond the second-level one.
@pytest.mark.parametrize(
    "size",
    [
        (12, 700, 400),
        (17, 40, 500),
        (33, 97, 160),
        (70, 16, 256),
        (20, 50, 4200),
        (291, 45, 600),
        (40, 700, 600),
    ],
)
@pytest.mark.parametrize("precision", ["medium", "high"])
def test_products(size: tuple[int, int, int], precision: str) -> None:
    m, n, k = size
    rng = np.random.default_rng(m)
    a, b = rng.standard_normal((m, k), "f"), rng.standard_normal((n, k), "f")
    with renga.using_config("compute_precision", precision):
        found = F.matmul(a, b, transb=True).array
    exact = a.astype("d") @ b.T.astype("d")
    if precision == "medium":
        exact = rounded_to_bfloat16(a).astype("d") @ rounded_to_bfloat16(b).T.astype(
            "d"
        )
    assert_near(found, exact, 2e-5 if precision == "high" else 2e-6)


@pytest.mark.parametrize(("precision", "rows"), [("medium", 11), ("high", 31)])
def test_products_with_few_rows_of_floats_are_float32(
    precision: str, rows: int
) -> None:
    """Rounding the weights would take longer."""
    rng = np.random.default_rng(rows)
    a, b = rng.standard_normal((rows, 300), "f"), rng.standard_normal((300, 200), "f")
    with renga.using_config("compute_precision", precision):
        found = F.matmul(a, b).array
    assert_near(found, a.astype("d") @ b.astype("d"), 2e-6)


@pytest.mark.parametrize("size", [(40, 700, 600), (300, 64, 64)])
def test_products_have_the_same_bits_on_any_number_of_threads(
    size: tuple[int, int, int],
) -> None:
    m, n, k = size
    rng = np.random.default_rng(m)
    a, b = rng.standard_normal((m, k), "f"), rng.standard_normal((k, n), "f")
    results = on_threads(lambda: F.matmul(a, b).array, (1, 2, 5))
    for others in results[1:]:
        np.testing.assert_array_equal(results[0], others)


def test_products_of_bfloat16_arrays_where_they_are() -> None:
    """Rows of a larger array, which have no bytes behind the last one."""
    rng = np.random.default_rng(0)
    with renga.using_config("dtype", renga.mixed_bfloat16):
        for rows in (16, 18, 31, 33, 47):
            a, b = drawn(rng, rows, 96), drawn(rng, 96, 64)
            left = as_bfloat16(np.concatenate([drawn(rng, 3, 96), a]))[3:]
            found = F.matmul(left, as_bfloat16(b)).array
            exact = a.astype("d") @ b.astype("d")
            assert (np.abs(found - exact) <= 2.0**-8 * np.abs(exact) + 1e-4).all()


@pytest.mark.parametrize("size", [(1, 500, 650), (20, 70, 650), (9, 40, 4200)])
def test_weights_that_are_used_several_times_give_the_same_bits(
    size: tuple[int, int, int],
) -> None:
    m, n, k = size
    rng = np.random.default_rng(0)
    W, b = renga.Parameter(drawn(rng, n, k)), renga.Parameter(drawn(rng, n))
    with renga.using_config("dtype", renga.mixed_bfloat16):
        x = drawn(rng, m, k)
        for _ in range(2):
            first = F.linear(as_bfloat16(x), W, b).array
            for _ in range(6):
                again = F.linear(as_bfloat16(x), W, b).array
                np.testing.assert_array_equal(again, first)
            exact = x.astype("d") @ W.array.T.astype("d") + b.array
            bound = 2.0**-8 * np.abs(exact) + 1e-5 * np.abs(exact).max()
            assert (np.abs(first - exact) <= bound).all()
            W.array = drawn(rng, n, k)


# samples, input and output channels, extents, kernel, stride, padding, dilation, groups
CONVOLUTIONS = {
    "few channels": (2, 3, 20, (9, 8), (3, 3), 1, 1, 1, 1),
    "few channels, large kernels at a stride": (1, 3, 33, (17, 15), (7, 5), 2, 3, 1, 1),
    "few output channels": (2, 32, 3, (6, 7), (3, 2), 1, 1, 1, 1),
    "pixels": (2, 32, 40, (7, 9), (3, 3), 1, 1, 1, 1),
    "pixels at a stride": (3, 40, 33, (9, 11), (3, 3), 2, 1, 1, 1),
    "stride beyond the kernel": (1, 32, 16, (9, 10), (2, 2), 3, 0, 1, 1),
    "dilated": (1, 33, 17, (10, 9), (3, 3), 1, 2, 2, 1),
    "pixels of even and odd shifts": (1, 32, 16, (5, 40), (2, 4), 1, 1, 1, 1),
    "bands of lines": (1, 16, 16, (120, 180), (3, 3), 1, 1, 1, 1),
    "samples that are packed apart": (3, 120, 130, (22, 24), (3, 3), 1, 1, 1, 1),
    "samples": (18, 32, 48, (4, 4), (3, 3), 1, 1, 1, 1),
    "samples, rounded by two threads": (18, 480, 16, (4, 4), (3, 3), 1, 1, 1, 1),
    "samples at a stride": (33, 36, 32, (4, 5), (4, 4), 2, 1, 1, 1),
    "pointwise": (2, 48, 64, (5, 6), (1, 1), 1, 0, 1, 1),
    "pointwise at a stride": (2, 64, 32, (6, 5), (1, 1), 2, 0, 1, 1),
    "pointwise, padded": (1, 32, 32, (3, 4), (1, 1), 1, 1, 1, 1),
    "pointwise, padded, at a stride": (1, 32, 16, (1, 1), (1, 1), 2, 1, 1, 1),
    "half a tile of channels": (2, 16, 16, (5, 9), (3, 3), 1, 1, 1, 1),
    "groups": (2, 64, 96, (5, 6), (3, 3), 1, 1, 1, 2),
    "groups of samples": (17, 64, 64, (3, 3), (3, 3), 1, 1, 1, 4),
    "groups of few channels": (2, 32, 64, (5, 6), (3, 3), 1, 1, 1, 8),
    "groups of few channels at a stride": (1, 24, 24, (7, 6), (3, 3), 2, 1, 1, 6),
    "one axis": (2, 32, 24, (40,), (3,), 1, 4, 4, 1),
    "three axes": (1, 17, 32, (5, 4, 6), (3, 2, 3), 1, 1, 1, 1),
    "bands of planes": (1, 16, 16, (9, 34, 50), (3, 1, 3), 1, 1, 1, 1),
    "three axes at a stride": (2, 16, 32, (5, 6, 5), (3, 3, 3), 2, 1, 1, 1),
    "a single pixel": (4, 64, 10, (1, 1), (1, 1), 1, 0, 1, 1),
    "nothing but padding": (1, 32, 16, (2, 2), (2, 2), 3, 3, 1, 1),
}


def exact_convolution(x, W, gy_of, stride, pad, dilate, groups):
    """The result and its gradients, by elements of the filter, in float64."""
    axes = W.ndim - 2
    wide = np.pad(x.astype("d"), [(0, 0), (0, 0), *[(pad, pad)] * axes])
    reach = [(k - 1) * dilate + 1 for k in W.shape[2:]]
    extents = [(n - r) // stride + 1 for n, r in zip(wide.shape[2:], reach)]
    inputs, outputs = W.shape[1], W.shape[0] // groups
    y = np.zeros((len(x), W.shape[0], *extents))

    def windows(array, tap, g):
        place = [
            slice(t * dilate, t * dilate + (n - 1) * stride + 1, stride)
            for t, n in zip(tap, extents)
        ]
        return array[(slice(None), slice(g * inputs, (g + 1) * inputs), *place)]

    gy = gx = gW = None
    for backward in (False, True):
        if backward:
            gy, gx, gW = gy_of(y.shape), np.zeros_like(wide), np.zeros(W.shape)
        for tap in np.ndindex(*W.shape[2:]):
            for g in range(groups):
                rows = slice(g * outputs, (g + 1) * outputs)
                w = W[(rows, slice(None), *tap)].astype("d")
                seen = windows(wide, tap, g)
                if not backward:
                    y[:, rows] += np.einsum("oi,ni...->no...", w, seen)
                    continue
                part = gy[:, rows].astype("d")
                windows(gx, tap, g)[...] += np.einsum("oi,no...->ni...", w, part)
                flat = part.reshape(*part.shape[:2], -1)
                gW[(rows, slice(None), *tap)] = np.einsum(
                    "nop,nip->oi", flat, seen.reshape(*seen.shape[:2], -1)
                )
    inner = tuple(slice(pad, pad + n) for n in x.shape[2:])
    return y, gy, gx[(slice(None), slice(None), *inner)], gW


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_all_passes_of_convolutions(case: str) -> None:
    samples, inputs, outputs, extents, kernel, stride, pad, dilate, groups = (
        CONVOLUTIONS[case]
    )
    rng = np.random.default_rng(0)
    x, W = (
        renga.Variable(drawn(rng, samples, inputs, *extents)),
        renga.Variable(drawn(rng, outputs, inputs // groups, *kernel)),
    )
    b = rng.standard_normal(outputs).astype("f")
    exact, gy, gx, gW = exact_convolution(
        x.array, W.array, lambda shape: drawn(rng, *shape), stride, pad, dilate, groups
    )
    convolve = F.convolution_2d if len(extents) == 2 else F.convolution_nd

    def all_passes():
        x.cleargrad(), W.cleargrad()
        y = convolve(x, W, b, stride=stride, pad=pad, dilate=dilate, groups=groups)
        y.grad = gy
        y.backward()
        return y.array, x.grad, W.grad

    results = on_threads(all_passes, (1, 3))
    per_channel = b.reshape(-1, *[1] * len(extents))
    for found, expected in zip(results[0], (exact + per_channel, gx, gW)):
        assert_near(found, expected)
    for one, three in zip(*results):
        np.testing.assert_array_equal(one, three)


def test_filters_that_are_used_twice_in_a_step_follow_their_updates() -> None:
    """They are packed once for both uses, in each direction."""
    rng = np.random.default_rng(0)
    images = [renga.Variable(drawn(rng, 2, 32, 6, 7)) for _ in range(2)]
    W = renga.Parameter(drawn(rng, 48, 32, 3, 3))
    for _ in range(3):
        ys = [F.convolution_2d(x, W, pad=1) for x in images]
        gys = [drawn(rng, *y.shape) for y in ys]
        gxs = renga.grad(ys, images, [renga.Variable(gy) for gy in gys])
        for x, y, gx, gy in zip(images, ys, gxs, gys):
            exact, _, exact_gx, _ = exact_convolution(
                x.array, W.array, lambda shape, gy=gy: gy, 1, 1, 1, 1
            )
            assert_near(y.array, exact)
            assert_near(gx.array, exact_gx)
        W.array[...] = drawn(rng, *W.shape)


def among_channels(image: np.ndarray) -> np.ndarray:
    """The same, channels last, as a part of the channels of a larger image."""
    pixels = np.moveaxis(image, 1, -1)
    wide = np.full((*pixels.shape[:-1], image.shape[1] + 5), np.nan, "f")
    part = wide[..., 2 : 2 + image.shape[1]]
    part[...] = pixels
    return np.moveaxis(part, -1, 1)


@pytest.mark.parametrize(
    "case",
    [
        "few channels",
        "pixels",
        "pixels at a stride",
        "samples at a stride",
        "pointwise",
        "half a tile of channels",
        "groups",
        "groups of samples",
        "three axes",
    ],
)
def test_images_may_be_a_part_of_the_channels_of_larger_ones(case: str) -> None:
    samples, inputs, outputs, extents, kernel, stride, pad, dilate, groups = (
        CONVOLUTIONS[case]
    )
    rng = np.random.default_rng(2)
    x, W = (
        drawn(rng, samples, inputs, *extents),
        drawn(rng, outputs, inputs // groups, *kernel),
    )
    exact, gy, gx, gW = exact_convolution(
        x, W, lambda shape: drawn(rng, *shape), stride, pad, dilate, groups
    )
    image, weights = renga.Variable(among_channels(x)), renga.Variable(W)
    y = F.convolution_nd(
        image, weights, stride=stride, pad=pad, dilate=dilate, groups=groups
    )
    y.grad = among_channels(gy)
    y.backward()
    for found, expected in zip((y.array, image.grad, weights.grad), (exact, gx, gW)):
        assert_near(found, expected)


@pytest.mark.parametrize("case", ["pixels", "samples", "few channels", "pointwise"])
def test_images_of_bfloat16_are_rounded_once(case: str) -> None:
    samples, inputs, outputs, extents, kernel, stride, pad, dilate, groups = (
        CONVOLUTIONS[case]
    )
    rng = np.random.default_rng(1)
    x, W = drawn(rng, samples, inputs, *extents), drawn(rng, outputs, inputs, *kernel)
    b = 100 * rng.standard_normal(outputs).astype("f")
    with renga.using_config("dtype", renga.mixed_bfloat16):
        found = F.convolution_2d(as_bfloat16(x), W, b, stride, pad).array
    exact, *_ = exact_convolution(x, W, np.zeros, stride, pad, dilate, groups)
    exact += b[:, None, None]
    bound = 2.0**-8 * np.abs(exact) + 1e-5 * np.abs(exact).max()
    assert (np.abs(found - exact) <= bound).all()


def test_images_beyond_the_caches_are_computed_in_bands() -> None:
    """Against direct sums, at pixels around the edges of bands."""
    rng = np.random.default_rng(0)
    x = renga.Variable(drawn(rng, 1, 64, 82, 80))
    W = renga.Variable(drawn(rng, 8, 64, 3, 3))
    y = F.convolution_2d(x, W, pad=1)
    wide = np.pad(x.array, [(0, 0), (0, 0), (1, 1), (1, 1)]).astype("d")
    for i, j in [(0, 0), (40, 79), (41, 0), (81, 79), *((k, 7) for k in range(82))]:
        seen = wide[0, :, i : i + 3, j : j + 3]
        expected = np.einsum("oihw,ihw->o", W.array.astype("d"), seen)
        np.testing.assert_allclose(y.array[0, :, i, j], expected, rtol=0, atol=1e-4)
    y.grad = gy = drawn(rng, *y.shape)
    y.backward()
    expected = np.einsum("oij,cij->oc", gy[0].astype("d"), wide[0, :, 2:, :-2])
    assert_near(W.grad[:, :, 2, 0], expected, 1e-5)


def test_algorithm_tiles_can_be_asked_for_by_name() -> None:
    """And others, too: then products are not made on tiles."""
    rng = np.random.default_rng(0)
    x, W = drawn(rng, 1, 32, 6, 6), drawn(rng, 32, 32, 3, 3)
    expected = F.convolution_2d(x, W, pad=1).array
    try:
        _core.use_convolution_kernel("tiles")
        np.testing.assert_array_equal(F.convolution_2d(x, W, pad=1).array, expected)
    finally:
        _core.use_convolution_kernel("auto")


def test_attention() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (drawn(rng, 2, 3, rows, 40) for rows in (96, 130, 130))
    inputs = [renga.Variable(x) for x in (q, k, v)]
    y = F.scaled_dot_product_attention(*inputs, scale=0.1)
    y.grad = gy = drawn(rng, *y.shape)
    y.backward()
    q, k, v, gy = (x.astype("d") for x in (q, k, v, gy))
    p = np.exp(0.1 * q @ k.swapaxes(2, 3))
    p /= p.sum(3, keepdims=True)
    gp = gy @ v.swapaxes(2, 3)
    gs = 0.1 * p * (gp - (gp * p).sum(3, keepdims=True))
    exact = p @ v, gs @ k, gs.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ gy
    for found, expected in zip((y.array, *(x.grad for x in inputs)), exact):
        assert_near(found, expected, 2.0**-8)


@pytest.mark.skipif(UNITS == ["portable"], reason="this processor has no tiles")
def test_the_processors_tiles_have_the_bits_of_the_portable_ones() -> None:
    rng = np.random.default_rng(0)
    x, W = (
        rng.standard_normal((3, 33, 7, 6), "f"),
        rng.standard_normal((17, 33, 3, 3), "f"),
    )
    a, b = rng.standard_normal((50, 300), "f"), rng.standard_normal((300, 70), "f")
    results = []
    for unit in UNITS:
        _core.override_tile_unit(unit)
        results.append((F.convolution_2d(x, W, pad=1).array, F.matmul(a, b).array))
    for portable, amx in zip(*results):
        np.testing.assert_array_equal(portable, amx)
