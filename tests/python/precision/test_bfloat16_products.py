"""Whether products are of bfloat16 is up to the CPU, not to the machine's clock."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import _core
from tests.rounding import rounded_to_bfloat16


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    _core.override_bfloat16(True)


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


@pytest.mark.parametrize("transb", [False, True])
@pytest.mark.parametrize(
    "shape", [(5, 64, 64, 64), (3, 70, 96, 128), (2, 1, 512, 512), (2, 256, 256, 288)]
)
def test_stacks_of_products(shape: tuple[int, ...], transb: bool) -> None:
    count, m, n, k = shape
    rng = np.random.default_rng(0)
    a = rng.standard_normal((count, m, k), "f")
    b = rng.standard_normal((count, n, k) if transb else (count, k, n), "f")
    left, right = (rounded_to_bfloat16(x).astype("d") for x in (a, b))
    expected = left @ (right.swapaxes(1, 2) if transb else right)
    before = _core.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            _core.set_num_threads(threads)
            with renga.using_config("compute_precision", "medium"):
                results.append(F.matmul(a, b, transb=transb).array)
    finally:
        _core.set_num_threads(before)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(results[0], expected, rtol=0, atol=1e-6 * scale)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
