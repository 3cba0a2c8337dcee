"""Whether products are of bfloat16 is up to the CPU, not to the machine's clock."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import _core
from renga._runtime.runtime_info import cpu
from tests.rounding import as_bfloat16, rounded_to_bfloat16
from tests.threads import on_threads


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    _core.override_bfloat16(True)


def as_multiplied(x: np.ndarray) -> np.ndarray:
    """Floats as products read them, which round where they are of bfloat16 numbers."""
    has_products = any(name in cpu() for name in ("avx512_bf16", "amx_bf16"))
    return (rounded_to_bfloat16(x) if has_products else x).astype("d")


def products(**config: object) -> list[np.ndarray]:
    """Of matrices, a convolution and attention."""
    rng = np.random.default_rng(0)

    def numbers(*shape: int) -> renga.Variable:
        return renga.Variable(rng.standard_normal(shape, "f"))

    with contextlib.ExitStack() as stack:
        for name, value in config.items():
            stack.enter_context(renga.using_config(name, value))
        results = [
            F.matmul(numbers(128, 128), numbers(128, 128)),
            F.convolution_2d(numbers(4, 32, 16, 16), numbers(32, 32, 3, 3), pad=1),
            F.scaled_dot_product_attention(*(numbers(1, 2, 64, 32) for _ in range(3))),
        ]
        return [F.cast(y, "float32").array for y in results]


def test_floats_are_multiplied_as_floats_where_that_is_faster() -> None:
    _core.override_bfloat16(False)
    found = products(compute_precision="medium")
    for some, others in zip(found, products(compute_precision="highest")):
        assert np.array_equal(some, others)


def test_products_of_bfloat16_arrays_have_the_same_results_but_for_rounding() -> None:
    found = products(dtype=renga.mixed_bfloat16)
    _core.override_bfloat16(False)
    for some, others in zip(found, products(dtype=renga.mixed_bfloat16)):
        scale = np.abs(others).max()
        np.testing.assert_allclose(some, others, rtol=0, atol=0.02 * scale)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("n", [1, 3, 40])
@pytest.mark.parametrize("k", [1, 9, 300, 20_000])
def test_products_of_lines_and_a_vector(dtype: str, n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    lines, vector = rng.standard_normal((n, k), "f"), rng.standard_normal((k, 1), "f")
    precision = {"bfloat16": 2**-8, "float16": 2**-11}[dtype]
    with renga.using_config("dtype", renga.mixed_bfloat16):
        if dtype == "bfloat16":
            lines, vector = rounded_to_bfloat16(lines), rounded_to_bfloat16(vector)
            a, x = as_bfloat16(lines), as_bfloat16(vector)
        else:
            lines, vector = lines.astype("e"), vector.astype("e")
            a, x = renga.Variable(lines), renga.Variable(vector)
        results = F.matmul(a, x), F.matmul(x, a, transa=True, transb=True)
        assert all(_core.dtype_name(y) == dtype for y in results)
        column, row = (F.cast(y, "float32").array for y in results)
    exact = lines.astype("d") @ vector.astype("d")
    sizes = np.abs(lines).astype("d") @ np.abs(vector).astype("d")
    assert (np.abs(column - exact) <= precision * np.abs(exact) + 1e-6 * sizes).all()
    np.testing.assert_array_equal(row.T, column)


@pytest.mark.parametrize("transb", [False, True])
@pytest.mark.parametrize(
    "shape",
    [
        (5, 64, 64, 64),
        (3, 70, 96, 128),
        (2, 12, 512, 512),
        (2, 256, 256, 288),
        # Operands that are written past the caches, but for one.
        (1, 600, 480, 544),
        (1, 540, 520, 500),
    ],
)
def test_stacks_of_products(shape: tuple[int, ...], transb: bool) -> None:
    count, m, n, k = shape
    rng = np.random.default_rng(0)
    a = rng.standard_normal((count, m, k), "f")
    b = rng.standard_normal((count, n, k) if transb else (count, k, n), "f")
    left, right = as_multiplied(a), as_multiplied(b)
    expected = left @ (right.swapaxes(1, 2) if transb else right)
    with renga.using_config("compute_precision", "medium"):
        results = on_threads(lambda: F.matmul(a, b, transb=transb).array)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(results[0], expected, rtol=0, atol=1e-6 * scale)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("margin", [0, 3])
@pytest.mark.parametrize("transb", [False, True])
@pytest.mark.parametrize("transa", [False, True])
@pytest.mark.parametrize(
    "size",
    [(65, 130, 97), (33, 1000, 512), (300, 48, 40), (12, 700, 700), (64, 64, 64)],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_operands_of_any_layout(
    dtype: str, size: tuple[int, int, int], transa: bool, transb: bool, margin: int
) -> None:
    m, n, k = size
    rng = np.random.default_rng(0)

    def operand(rows: int, columns: int, transposed: bool) -> renga.Variable:
        shape = (columns, rows) if transposed else (rows, columns)
        wide = rng.standard_normal((shape[0], shape[1] + margin), "f")
        held = as_bfloat16(wide) if dtype == "bfloat16" else renga.Variable(wide)
        return held[:, margin:]

    activations = renga.mixed_bfloat16 if dtype == "bfloat16" else np.float32
    with renga.using_config("dtype", activations):
        a, b = operand(m, k, transa), operand(k, n, transb)
        with renga.using_config("compute_precision", "medium"):
            found = F.matmul(a, b, transa, transb)
    left, right = as_multiplied(a.array), as_multiplied(b.array)
    expected = (left.T if transa else left) @ (right.T if transb else right)
    assert_rounded_once(found.array, expected, dtype)


def assert_rounded_once(found: np.ndarray, exact: np.ndarray, dtype: str) -> None:
    unit = 2.0**-8 if dtype == "bfloat16" else 0
    bound = unit * np.abs(exact) + 1e-6 * np.abs(exact).max()
    assert (np.abs(found - exact) <= bound).all()


@pytest.mark.parametrize("shape", [(64, 96, 80), (9, 1000, 512)])
def test_a_bias_is_added_before_rounding(shape: tuple[int, int, int]) -> None:
    rows, outputs, inputs = shape
    rng = np.random.default_rng(0)
    x, W = (
        rng.standard_normal((rows, inputs), "f"),
        rng.standard_normal((outputs, inputs), "f"),
    )
    b = 100 * rng.standard_normal(outputs).astype("f")
    left, right = rounded_to_bfloat16(x).astype("d"), as_multiplied(W)
    with renga.using_config("dtype", renga.mixed_bfloat16):
        found = F.linear(x, W, b).array
    assert_rounded_once(found, left @ right.T + b, "bfloat16")


# These are multiplied in float32: rounding would take longer.
@pytest.mark.parametrize(
    "shapes",
    [
        ((5000, 4, 4), (5000, 4, 4)),
        ((700, 1, 64), (700, 64, 6)),
        ((3, 1200), (1200, 700)),
        ((3000, 300), (300, 1)),
        ((100000,), (100000,)),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_few_products(dtype: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal(shape, "f") for shape in shapes)
    with renga.using_config("dtype", renga.mixed_bfloat16):
        if dtype == "bfloat16":
            a, b = as_bfloat16(left), as_bfloat16(right)
        else:
            a, b = (renga.Variable(x.astype(dtype)) for x in (left, right))
        found = F.matmul(a, b)
    expected = a.array.astype("d") @ b.array.astype("d")
    assert_rounded_once(np.asarray(found.array, "d"), expected, "bfloat16")
