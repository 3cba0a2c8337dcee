"""Functions of single elements whose arguments are checked."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array, as_variable, holds_numbers
from renga.functions.check import check_alike, check_arrays, check_floats
from renga.utils.extents import check_real
from renga.utils.type_check import InvalidType


def add(*xs: ArrayLike) -> Variable:
    """The sum of all the arrays and numbers, by ``+``.

    Raises:
        InvalidType: shapes or dtypes do not fit, or there is nothing to add.
    """
    if not xs:
        raise InvalidType("add: expected at least one array, got none")
    dtypes = {x.dtype.newbyteorder("=") for x in xs if hasattr(x, "dtype")}
    if len(xs) > 2 and len(dtypes) > 1:
        raise InvalidType(f"add: expected one dtype, got {[str(d) for d in dtypes]}")
    check_arrays("add", xs[0])
    if len(xs) == 1:
        return _core.ops.identity(xs[0])
    y = as_variable(xs[0])
    for x in xs[1:]:
        y = y + x
    return y


def clip(x: ArrayLike, x_min: float | None, x_max: float | None) -> Variable:
    """``x`` limited to [x_min, x_max]; None means no limit.

    Raises:
        TypeError: a limit is not a number.
        ValueError: ``x_min`` is not below ``x_max``, or there is no limit.
        InvalidType: ``x`` is not of floats.
    """
    check_arrays("clip", x)
    if x_min is None and x_max is None:
        raise ValueError("clip: expected at least one limit, got None and None")
    x_min = -math.inf if x_min is None else check_real("clip", "x_min", x_min)
    x_max = math.inf if x_max is None else check_real("clip", "x_max", x_max)
    if x_min >= x_max:
        raise ValueError(f"clip: expected x_min < x_max, got {x_min} and {x_max}")
    if x.dtype.kind != "f":
        raise InvalidType(f"clip: expected floats, got {x.dtype}")
    return _core.ops.clip(x, x_min, x_max)


def fmod(x: ArrayLike, divisor: ArrayLike) -> Variable:
    """The remainder of division, with the sign of ``x``.

    Raises:
        InvalidType: dtypes differ or are not floats.
    """
    check_floats("fmod", x, divisor)
    return _core.ops.fmod(x, divisor)


def linear_interpolate(p: ArrayLike, x: ArrayLike, y: ArrayLike) -> Variable:
    """``p x + (1 - p) y``.

    Raises:
        InvalidType: shapes or dtypes differ, or are not floats.
    """
    check_alike("linear_interpolate", p, x, y)
    return _core.ops.linear_interpolate(p, x, y)


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


@overload
def identity(x: ArrayLike, /) -> Variable: ...
@overload
def identity(
    x: ArrayLike, y: ArrayLike, /, *more: ArrayLike
) -> tuple[Variable, ...]: ...
def identity(*inputs: ArrayLike) -> Variable | tuple[Variable, ...]:
    """New variables with the values of the inputs; one alone is no tuple."""
    check_arrays("identity", *inputs)
    try:
        ys = tuple(map(_core.ops.identity, inputs))
    except InvalidType:
        if all(map(holds_numbers, inputs)):
            raise
        ys = tuple(Variable(as_array(x), requires_grad=False) for x in inputs)
    return ys[0] if len(ys) == 1 else ys
