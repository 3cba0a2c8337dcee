"""Points between two."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_alike


def linear_interpolate(p: ArrayLike, x: ArrayLike, y: ArrayLike) -> Variable:
    """``p x + (1 - p) y``.

    Raises:
        InvalidType: shapes or dtypes differ, or are not floats.
    """
    check_alike("linear_interpolate", p, x, y)
    return _core.ops.linear_interpolate(p, x, y)
