"""GradientClipping: limits the norm of all gradients together."""

from __future__ import annotations

from typing import Any

from renga.optimizer_hooks.loss_scale import scale_of
from renga.optimizer_hooks.norm import (
    as_factor,
    is_above,
    one_unless,
    square_root,
    squared_norm,
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
        params = [
            param
            for param in opt.target.params(include_uninit=False)
            if param.grad is not None
        ]
        squares = [squared_norm(p, p.grad) / scale_of(p) ** 2 for p in params]
        norm = square_root(opt.target.sum_over_stages(total(squares)))
        above = is_above(norm, self.threshold)
        if above is False:
            return
        rate = one_unless(above, lambda: self.threshold / norm)
        for param in params:
            param.grad *= as_factor(rate, param.grad)
