"""Gradients of L1 and L2 penalties: both pull parameters to zero."""

from __future__ import annotations

from renga import _core
from renga.core.parameter import Parameter
from renga.optimizer_hooks.gradient_change import GradientChange, scale_of
from renga.utils.argument import check_number


class Lasso:
    """Adds ``rate * sign(param)`` to the gradient: the gradient of an L1 penalty."""

    name = "Lasso"
    call_for_each_param = True
    timing = "pre"

    def __init__(self, rate: float) -> None:
        check_number("Lasso: rate", rate)
        self.rate = rate

    def __call__(self, rule: object, param: Parameter) -> None:
        if param.array is None or param.grad is None:
            return
        sign = param.xp.sign(param.array)
        sign *= self.rate * scale_of(param)
        param.grad += sign


class WeightDecay:
    """Adds ``rate * param`` to the gradient: the gradient of an L2 penalty."""

    name = "WeightDecay"
    call_for_each_param = True
    timing = "pre"

    def __init__(self, rate: float) -> None:
        check_number("WeightDecay: rate", rate)
        self.rate = rate

    def __call__(self, rule: object, param: Parameter) -> None:
        if param.array is None or param.grad is None:
            return
        rate = self.rate * scale_of(param)
        _core.optimizers.add_scaled(param.grad, param.array, rate)

    def fused(self, opt: object) -> GradientChange:
        """Decays as a part of the updates that follow directly."""
        return GradientChange(lambda param: self(None, param), decay=self.rate)
