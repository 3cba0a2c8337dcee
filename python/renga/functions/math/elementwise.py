"""Functions of single elements whose arguments are checked."""

from __future__ import annotations

import math

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
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
