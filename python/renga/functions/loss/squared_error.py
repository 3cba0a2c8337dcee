"""Squares of differences, as a loss."""

from __future__ import annotations

from typing import Any

from renga.core.variable import Variable
from renga.functions.math.squared_difference import squared_difference


def squared_error(x0: Any, x1: Any) -> Variable:
    """``(x0 - x1) ** 2``, element by element.

    Raises:
        InvalidType: shapes or dtypes differ, or are not floats.
    """
    return squared_difference(x0, x1)
