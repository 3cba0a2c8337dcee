"""GradientLARS: a learning rate for every layer, from the norms of its arrays."""

from __future__ import annotations

from renga.core.parameter import Parameter
from renga.core.variable import as_factor
from renga.optimizer_hooks.gradient_change import scale_of
from renga.optimizer_hooks.norm import (
    is_above,
    one_unless,
    square_root,
    squared_norm,
)
from renga.utils.argument import check_number


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
