"""Derivatives of the digamma function, and Hurwitz's zeta."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array
from renga.functions.check import check_arrays, check_floats
from renga.utils.type_check import InvalidType


def polygamma(n: ArrayLike, x: ArrayLike) -> Variable:
    """The ``n``-th derivative of ``digamma(x)``; it has a gradient in ``x`` only.

    Shapes:
        n: integers, of a shape that broadcasts to that of x

    Raises:
        InvalidType: ``n`` is not of integers or ``x`` not of floats.
    """
    check_floats("polygamma", x)
    n = _numbers(n)
    if n.dtype.kind not in "iu":
        raise InvalidType(f"polygamma: expected n of integers, got {n.dtype}")
    return _core.ops.polygamma(n, x)


def zeta(x: ArrayLike, q: ArrayLike) -> Variable:
    """``sum((k + q) ** -x)`` for k = 0, 1, …; it has a gradient in ``q`` only.

    Raises:
        InvalidType: ``x`` is not of real numbers or ``q`` not of floats.
    """
    check_arrays("zeta", q)
    x = _numbers(x)
    if x.dtype.kind not in "biuf":
        raise InvalidType(f"zeta: expected x of real numbers, got {x.dtype}")
    return _core.ops.zeta(x, q, 0)


def _numbers(x: Any) -> Any:
    """The array of a Variable, an array, or a number as an array."""
    x = as_array(x)
    return x if hasattr(x, "dtype") else numpy.asarray(x)
