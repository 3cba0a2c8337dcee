"""Lasso: pulls parameters to zero at a constant rate."""

from __future__ import annotations

from renga.core.parameter import Parameter
from renga.optimizer_hooks.loss_scale import scale_of
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
