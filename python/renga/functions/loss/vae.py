"""Losses of variational auto-encoders."""

from __future__ import annotations

import math
from typing import Any

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import in_nominal_dtype
from renga.functions.check import check_broadcast, check_floats
from renga.functions.loss.reduction import check_reduce, reduced
from renga.functions.on_host import beside as on_device_of

REDUCTIONS = ("sum", "mean", "no")


def gaussian_kl_divergence(
    mean: ArrayLike, ln_var: ArrayLike, reduce: str = "sum"
) -> Variable:
    """Divergence of normal distributions from the standard one.

    ``mean`` may be a number.

    Raises:
        ValueError: ``reduce`` is neither "sum" nor "mean" nor "no".
        InvalidType: shapes or dtypes do not fit.

    Source: Kingma and Welling, Auto-encoding variational Bayes, 2013.
    """
    check_reduce("gaussian_kl_divergence", reduce, REDUCTIONS)
    mean = _as_array(mean, ln_var)
    check_broadcast("gaussian_kl_divergence", mean, ln_var)
    ops = _core.ops
    mean, ln_var = in_nominal_dtype(mean), in_nominal_dtype(ln_var)
    loss = ops.square(mean) + (ops.expm1(ln_var) - ln_var)
    return reduced(loss * 0.5, reduce)


def bernoulli_nll(x: ArrayLike, y: ArrayLike, reduce: str = "sum") -> Variable:
    """``-x log p - (1 - x) log(1 - p)`` with ``p = sigmoid(y)``.

    ``x`` may be a number.

    Raises:
        ValueError: ``reduce`` is neither "sum" nor "mean" nor "no".
        InvalidType: shapes or dtypes do not fit.
    """
    check_reduce("bernoulli_nll", reduce, REDUCTIONS)
    x = _as_array(x, y)
    check_floats("bernoulli_nll", x, y)
    loss = _core.ops.bernoulli_nll(in_nominal_dtype(y), in_nominal_dtype(x))
    return reduced(loss, reduce)


def gaussian_nll(
    x: ArrayLike, mean: ArrayLike, ln_var: ArrayLike, reduce: str = "sum"
) -> Variable:
    """``-log`` of the density at ``x`` of normal distributions.

    ``x`` and ``mean`` may be numbers.

    Raises:
        ValueError: ``reduce`` is neither "sum" nor "mean" nor "no".
        InvalidType: shapes or dtypes do not fit.
    """
    check_reduce("gaussian_nll", reduce, REDUCTIONS)
    x, mean = _as_array(x, ln_var), _as_array(mean, ln_var)
    check_broadcast("gaussian_nll", x, mean, ln_var)
    ops, ln_var = _core.ops, in_nominal_dtype(ln_var)
    distance = ops.squared_difference(in_nominal_dtype(x), mean) * ops.exp(-ln_var)
    return reduced((distance + ln_var + math.log(2 * math.pi)) * 0.5, reduce)


def _as_array(x: Any, beside: Any) -> Any:
    """A number as an array of the dtype and device of another; ``x`` if it is none."""
    if not isinstance(x, (int, float)) or not hasattr(beside, "dtype"):
        return x
    return on_device_of(beside, numpy.asarray(x, beside.dtype))
