"""Inverse hyperbolic tangent."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.core.variable import Variable, as_variable
from renga.functions.check import check_floats


def arctanh(x: Any) -> Variable:
    """The number whose hyperbolic tangent is ``x``.

    Raises:
        InvalidType: ``x`` is not of floats.
    """
    check_floats("arctanh", x)
    x = as_variable(x)
    return (_core.ops.log1p(x) - _core.ops.log1p(-x)) * 0.5
