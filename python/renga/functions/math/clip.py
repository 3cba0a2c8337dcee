"""Values limited to an interval."""

from __future__ import annotations

import math

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays
from renga.utils.extents import check_real
from renga.utils.type_check import InvalidType


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
