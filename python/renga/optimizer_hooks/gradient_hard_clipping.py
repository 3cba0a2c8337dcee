"""GradientHardClipping: clips every element of a gradient."""

from __future__ import annotations

from renga.core.parameter import Parameter
from renga.optimizer_hooks.loss_scale import scale_of
from renga.utils.argument import check_number


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
