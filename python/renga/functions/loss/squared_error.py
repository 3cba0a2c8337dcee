"""Squares of differences, under two names."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_alike


def squared_difference(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """``(x1 - x2) ** 2``, element by element.

    Raises:
        InvalidType: shapes or dtypes differ, or are not floats.
    """
    check_alike("squared_difference", x1, x2)
    return _core.ops.squared_difference(x1, x2)


def squared_error(x0: ArrayLike, x1: ArrayLike) -> Variable:
    """``(x0 - x1) ** 2``, element by element.

    Raises:
        InvalidType: shapes or dtypes differ, or are not floats.
    """
    return squared_difference(x0, x1)
