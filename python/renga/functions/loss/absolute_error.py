"""Absolute differences."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import in_nominal_dtype
from renga.functions.check import check_alike


def absolute_error(x0: ArrayLike, x1: ArrayLike) -> Variable:
    """``|x0 - x1|``, element by element.

    Raises:
        InvalidType: shapes or dtypes differ, or are not floats.
    """
    check_alike("absolute_error", x0, x1)
    return _core.ops.absolute(_core.ops.subtract(in_nominal_dtype(x0), x1))
