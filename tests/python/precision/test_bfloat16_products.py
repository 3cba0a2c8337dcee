"""Whether products are of bfloat16 is up to the CPU, not to the machine's clock."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import _core


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
