"""Comparison of arrays in tests."""

from __future__ import annotations

import numpy

from renga.core.types import Array
from renga.core.variable import as_array


def assert_allclose(
    x: Array, y: Array, atol: float = 1e-5, rtol: float = 1e-4, verbose: bool = True
) -> None:
    """Raises AssertionError unless ``|x - y| <= atol + rtol * |y|`` everywhere.

    ``x`` and ``y`` are arrays, numbers or Variables.
    """
    x, y = (numpy.asarray(as_array(each)) for each in (x, y))
    try:
        numpy.testing.assert_allclose(x, y, atol=atol, rtol=rtol, verbose=verbose)
    except AssertionError as error:
        worst = _worst(x, y, atol, rtol) if x.shape == y.shape else ""
        raise AssertionError(
            f"{error}\n\nassert_allclose: arrays differ\n  shape: {x.shape} {y.shape}\n"
            f"  dtype: {x.dtype} {y.dtype}\n{worst}x: {x}\ny: {y}\n"
        ) from None


def _worst(x: numpy.ndarray, y: numpy.ndarray, atol: float, rtol: float) -> str:
    """The element that is furthest beyond its tolerance."""
    xs, ys = (numpy.atleast_1d(each).astype(numpy.float64) for each in (x, y))
    error, relative = numpy.abs(xs - ys), rtol * numpy.abs(ys)
    i = numpy.unravel_index(numpy.argmax(error - relative), error.shape)
    quotient = error[i] / numpy.abs(ys[i]) if ys[i] else numpy.inf
    return (
        f"  i: {tuple(map(int, i))}\n  x[i]: {xs[i]}\n  y[i]: {ys[i]}\n"
        f"  relative error[i]: {quotient}\n  absolute error[i]: {error[i]}\n"
        f"  relative tolerance * |y[i]|: {relative[i]}\n"
        f"  absolute tolerance: {atol}\n  total tolerance: {atol + relative[i]}\n"
    )
