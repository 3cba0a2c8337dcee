"""Sums of several arrays."""

from __future__ import annotations

import functools
from typing import Any

from renga import _core
from renga.utils.type_check import InvalidType
from renga.variable import Variable, as_variable


def add(*xs: Any) -> Variable:
    """The sum of all the arrays, element by element with broadcasting."""
    if len(xs) == 2:
        return _core.ops.add(*xs)
    if not xs:
        raise InvalidType("add: expected at least one array, got none")
    return functools.reduce(_core.ops.add, xs[1:], as_variable(xs[0]))
