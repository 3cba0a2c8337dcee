"""Gradients limited by their norm, or element by element."""

from __future__ import annotations

import functools
from typing import Any, Callable

from renga.core.parameter import Parameter
from renga.core.variable import Variable, as_factor
from renga.optimizer_hooks.gradient_change import GradientChange, scale_of
from renga.optimizer_hooks.norm import (
    is_above,
    one_unless,
    square_root,
    squared_gradients,
    total,
)
from renga.utils.argument import check_number


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
