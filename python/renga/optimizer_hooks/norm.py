"""Norms of gradients, and hooks that scale gradients by them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Callable, Union

import numpy

from renga import _core
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.core.variable import Variable, as_factor, as_number, as_variable
from renga.optimizer_hooks.gradient_change import GradientChange, scale_of
from renga.utils.argument import check_number

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


class GradientClipping:
    """Scales all gradients down so that their joint L2 norm is ``threshold``.

    Gradients with a smaller norm are unchanged.
    """

    name = "GradientClipping"
    timing = "pre"

    def __init__(self, threshold: float) -> None:
        check_number("GradientClipping: threshold", threshold, 0)
        self.threshold = threshold

    def __call__(self, opt: Any) -> None:
        rate = self._rate(opt)
        if rate is None:
            return
        for param in opt.target.params(include_uninit=False):
            _scale(param, rate)

    def fused(self, opt: object) -> Callable[[object], None] | GradientChange | None:
        """Scales as a part of the updates that follow directly, if it can.

        None if gradients stay as they are.
        """
        rate = self._rate(opt)
        if rate is None:
            return None
        scale = functools.partial(_scale, rate=rate)
        if isinstance(rate, Variable):  # a device's, no number that an update takes
            return scale
        return GradientChange(scale, rate)

    def _rate(self, opt: Any) -> Any:
        """By what gradients are multiplied; None if they stay as they are."""
        squares = squared_gradients(list(opt.target.params(include_uninit=False)))
        norm = square_root(opt.target.sum_over_stages(total(squares)))
        above = is_above(norm, self.threshold)
        if above is False:
            return None
        return one_unless(above, lambda: self.threshold / norm)


def _scale(param: Any, rate: Any) -> None:
    if param.is_initialized and param.grad is not None:
        param.grad *= as_factor(rate, param.grad)


class GradientHardClipping:
    """Clips each element of the gradient to [``lower_bound``, ``upper_bound``]."""

    name = "GradientHardClipping"
    call_for_each_param = True
    timing = "pre"

    def __init__(self, lower_bound: float, upper_bound: float) -> None:
        check_number("GradientHardClipping: lower_bound", lower_bound)
        self.lower_bound = lower_bound
        check_number("GradientHardClipping: upper_bound", upper_bound)
        if lower_bound > upper_bound:
            raise ValueError(
                "GradientHardClipping: expected lower_bound <= upper_bound, got "
                f"{lower_bound} and {upper_bound}"
            )
        self.upper_bound = upper_bound

    def __call__(self, rule: object, param: Parameter) -> None:
        grad = param.grad
        if grad is None:
            return
        scale = scale_of(param)
        bounds = (self.lower_bound * scale, self.upper_bound * scale)
        param.xp.clip(grad, *bounds, out=grad)


class GradientLARS:
    """Scales a gradient to the size of its parameter, for very large batches.

    ``g = rate (g + weight_decay x)`` with
    ``rate = |x| / (eps + |g| + weight_decay |x|)``, or 1 where ``|x|`` is not above
    ``threshold``.

    Source: You et al., arXiv:1708.03888.
    """

    name = "GradientLARS"
    call_for_each_param = True
    timing = "pre"

    def __init__(
        self, threshold: float = 1e-2, weight_decay: float = 0.0, eps: float = 1e-9
    ) -> None:
        check_number("GradientLARS: threshold", threshold)
        self.threshold = threshold
        check_number("GradientLARS: weight_decay", weight_decay)
        self.weight_decay = weight_decay
        check_number("GradientLARS: eps", eps)
        self.eps = eps

    def __call__(self, rule: object, param: Parameter) -> None:
        x, grad = param.array, param.grad
        if x is None or grad is None:
            return
        scale = scale_of(param)
        x_norm = square_root(squared_norm(param, x))
        g_norm = square_root(squared_norm(param, grad)) / scale
        rate = one_unless(
            is_above(x_norm, self.threshold),
            lambda: x_norm / (self.eps + g_norm + self.weight_decay * x_norm),
        )
        grad += (scale * self.weight_decay) * x
        grad *= as_factor(rate, grad)
