"""Norms of parameters' arrays, and factors that depend on them.

On a device they are Variables of one number there: the host does not wait for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Union

import numpy

from renga import _core
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.core.variable import Variable, as_number, as_variable
from renga.optimizer_hooks.gradient_change import scale_of

Scalar = Union[Variable, float]
"""A number, on a device a Variable."""
_FLOAT64 = numpy.dtype(numpy.float64)
# A class may override these, which say what the gradient is and whose it is.
_OURS = ("grad", "sum_over_shards")
_BOOL = numpy.dtype(numpy.bool_)


def squared_norm(param: Parameter, x: Array) -> Scalar:
    """The sum of the squares of an array of a parameter.

    For a parameter sharded over ranks it is that of the full array: a collective call.
    """
    if isinstance(x, numpy.ndarray):
        square: Any = _core.optimizers.squared_norm(x)
    else:
        wide = _core.ops.cast(as_variable(x), numpy.result_type(x.dtype, "f"))
        square = _core.ops.cast(_core.ops.sum(_core.ops.square(wide)), _FLOAT64)
    return param.sum_over_shards(square) if isinstance(param, Parameter) else square


def squared_gradients(params: list[Parameter]) -> Sequence[Scalar]:
    """The same of each gradient that a parameter has, without its loss scale."""
    kinds = {type(param) for param in params}
    if all(getattr(kind, x) is getattr(Parameter, x) for kind in kinds for x in _OURS):
        squares = _core.optimizers.squared_gradients(params)
        if squares is not None:
            return list(squares)
    return [
        squared_norm(param, param.grad) / scale_of(param) ** 2
        for param in params
        if param.grad is not None
    ]


def square_root(square: Scalar) -> Scalar:
    """The norm of a squared norm."""
    return _core.ops.sqrt(square) if isinstance(square, Variable) else math.sqrt(square)


def is_above(norm: Scalar, threshold: float) -> Variable | bool:
    """Whether a norm is above a threshold; NaN is not."""
    if not isinstance(norm, Variable):
        return norm > threshold
    # The position of the smaller one, or of NaN.
    pair = _core.ops.stack([norm, _constant(threshold, norm)], 0)
    return _core.ops.cast(_core.ops.argmin(pair, 0), _BOOL)


def one_unless(condition: object, factor: Callable[[], Scalar]) -> Scalar:
    """``factor()`` where the condition holds, 1 elsewhere."""
    if not isinstance(condition, Variable):
        return factor() if condition else 1.0
    return _core.ops.where(condition, factor(), _constant(1.0, condition))


def total(squares: Sequence[Scalar]) -> Scalar:
    """The sum of squared norms; a number where they are on several devices."""
    devices = {getattr(square, "device_name", "") for square in squares}
    return sum(squares if len(devices) == 1 else map(as_number, squares))


def _constant(value: float, like: Variable) -> Any:
    """A number where ``like`` is."""
    constant = _core.empty((), _FLOAT64, like.device_name)
    _core.fill_array(constant, value)
    return constant
