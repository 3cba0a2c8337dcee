"""The gradient of weights that several linear maps use is one product of all rows."""

from __future__ import annotations

import numpy as np
import pytest

import renga
import renga.functions as F


def numbers(*shape: int, seed: int, dtype: str = "f") -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def gradient(xs: list, W: np.ndarray, gys: list[np.ndarray]) -> np.ndarray:
    w = renga.Parameter(W)
    loss = sum(F.sum(F.linear(x, w) * gy) for x, gy in zip(xs, gys))
    loss.backward()
    return w.grad


def reference(xs: list[np.ndarray], gys: list[np.ndarray]) -> np.ndarray:
    return sum(gy.astype("d").T @ x.astype("d") for x, gy in zip(xs, gys))


# Rows that are joined first, as they are few or short, and those left where they are.
@pytest.mark.parametrize("uses,rows", [(2, 3), (4, 127), (26, 20), (3, 400), (52, 20)])
@pytest.mark.parametrize("size", [(8, 5), (129, 64), (200, 97), (650, 130)])
def test_as_in_float64(uses: int, rows: int, size: tuple[int, int]) -> None:
    xs = [numbers(rows, size[1], seed=i) for i in range(uses)]
    gys = [numbers(rows, size[0], seed=100 + i) for i in range(uses)]
    got = gradient(xs, numbers(*size, seed=1), gys)
    np.testing.assert_allclose(got, reference(xs, gys), rtol=0, atol=5e-4)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: np.concatenate([x, x], 1)[:, : x.shape[1]],
        lambda x: np.repeat(x, 2, 1)[:, ::2],
        lambda x: np.asfortranarray(x),
        lambda x: x[::-1],
        lambda x: np.broadcast_to(x[:1], x.shape),
    ],
    ids=["wide rows", "every second number", "Fortran order", "reversed", "one row"],
)
def test_rows_of_any_layout(change) -> None:
    xs = [change(numbers(200, 96, seed=i)) for i in range(3)]
    gys = [numbers(200, 160, seed=100 + i) for i in range(3)]
    got = gradient(xs, numbers(160, 96, seed=1), gys)
    np.testing.assert_allclose(got, reference(xs, gys), rtol=0, atol=5e-4)


@pytest.mark.parametrize("dtype,atol", [("e", 0.2), ("d", 1e-11)])
def test_other_dtypes(dtype: str, atol: float) -> None:
    xs = [numbers(200, 96, seed=i, dtype=dtype) for i in range(3)]
    gys = [numbers(200, 160, seed=100 + i, dtype=dtype) for i in range(3)]
    got = gradient(xs, numbers(160, 96, seed=1, dtype=dtype), gys)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_allclose(got, reference(xs, gys), rtol=0, atol=atol)


def test_second_derivatives() -> None:
    xs = [renga.Variable(numbers(200, 96, seed=i)) for i in range(3)]
    w = renga.Parameter(numbers(160, 96, seed=5))
    loss = sum(F.sum(F.linear(x, w) ** 2) for x in xs)
    (gw,) = renga.grad([loss], [w], enable_double_backprop=True)
    (ggw,) = renga.grad([F.sum(gw * gw)], [w])
    # gw = 2 W A with A = sum of x^T x; the gradient of |gw|^2 is 8 W A^2.
    A = sum(x.array.astype("d").T @ x.array for x in xs)
    expected = 8 * w.array.astype("d") @ A @ A
    atol = 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(ggw.array, expected, rtol=0, atol=atol)


def test_nan_stays_in_its_row() -> None:
    xs = [numbers(200, 96, seed=i) for i in range(3)]
    gys = [numbers(200, 160, seed=100 + i) for i in range(3)]
    gys[1][7, 5] = np.nan
    got = gradient(xs, numbers(160, 96, seed=1), gys)
    assert np.isnan(got[5]).all()
    assert np.isfinite(np.delete(got, 5, 0)).all()
