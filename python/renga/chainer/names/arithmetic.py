"""Operators of Variables by Chainer's names, and helpers of products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from renga.chainer.function_classes.generated import (  # noqa: F401
    value_label as _convert_value_to_string,
)
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_variable
from renga.utils import type_check

# chainer.functions.math.basic_math


def _preprocess_const(x: Any, value: Any) -> Any:
    """A number in the dtype of ``x``."""
    return x.dtype.type(value)


def _operator(
    name: str, compute: Callable[[Any, Any], Any]
) -> Callable[[ArrayLike, Operand], Variable]:
    def function(self: ArrayLike, rhs: Operand) -> Variable:
        return compute(as_variable(self), rhs)

    function.__name__ = function.__qualname__ = name
    return function


sub = _operator("sub", lambda x, y: x - y)
rsub = _operator("rsub", lambda x, y: y - x)
mul = _operator("mul", lambda x, y: x * y)
div = _operator("div", lambda x, y: x / y)
rdiv = _operator("rdiv", lambda x, y: y / x)
floordiv = _operator("floordiv", lambda x, y: x // y)
rfloordiv = _operator("rfloordiv", lambda x, y: y // x)
pow = _operator("pow", lambda x, y: x**y)
rpow = _operator("rpow", lambda x, y: y**x)
rmatmul = _operator("rmatmul", lambda x, y: y @ x)


def neg(self: ArrayLike) -> Variable:
    """``-self``."""
    return -as_variable(self)


# chainer.functions.math.matmul


def _matmul(
    a: Any, b: Any, transa: bool = False, transb: bool = False, transout: bool = False
) -> Any:
    """The product of arrays, whose last two axes may be swapped before, or after."""
    a = a.swapaxes(-1, -2) if transa and a.ndim > 1 else a
    b = b.swapaxes(-1, -2) if transb and b.ndim > 1 else b
    product = numpy.matmul(a, b)
    return product.swapaxes(-1, -2) if transout else product


def _check_ndim(in_type: Any, lower: int = 1, upper: int = 2) -> None:
    """Raises InvalidType unless there are so many axes."""
    type_check.expect(lower <= in_type.ndim, in_type.ndim <= upper)


def _get_check_index(
    trans: bool, right: bool, row_idx: int = 0, col_idx: int = 1
) -> int:
    """The axis of a factor over which the product adds up."""
    return row_idx if trans != right else col_idx
