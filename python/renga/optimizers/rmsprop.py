"""RMSprop: steps divided by the recent size of the gradient."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.optimizer import GradientMethod, HyperparameterProxy, UpdateRule, in_one_pass


class RMSpropRule(UpdateRule):
    """``ms = alpha ms + (1 - alpha) g²; x -= lr g / (√ms + eps)``."""

    is_elementwise = True

    def init_state(self, param: Any) -> None:
        self.init_zeros(param, "ms")

    @in_one_pass
    def update_core_cpu(self, param: Any) -> None:
        hp = self.hyperparam
        if hp.eps != 0 and param.dtype.type(hp.eps) == 0:
            raise ValueError(
                f"eps of RMSprop optimizer is too small for {param.dtype} ({hp.eps})"
            )
        _core.optimizers.rmsprop(
            param.array,
            self.gradient_of(param),
            self.state["ms"],
            hp.lr,
            hp.alpha,
            hp.eps,
            hp.eps_inside_sqrt,
        )


class RMSprop(GradientMethod):
    """Divides each step by a running root mean square of the gradient.

    ``ms = alpha ms + (1 - alpha) g²; x -= lr g / (√ms + eps)``, or with
    ``eps_inside_sqrt`` ``x -= lr g / √(ms + eps)``.

    An update raises ValueError where ``eps`` is zero in the parameter's dtype.

    Source: Tieleman and Hinton, Coursera lecture 6.5, 2012.
    """

    lr = HyperparameterProxy("lr")
    alpha = HyperparameterProxy("alpha")
    eps = HyperparameterProxy("eps")
    eps_inside_sqrt = HyperparameterProxy("eps_inside_sqrt")

    def __init__(
        self,
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        eps_inside_sqrt: bool = False,
    ) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.alpha = alpha
        self.hyperparam.eps = eps
        self.hyperparam.eps_inside_sqrt = eps_inside_sqrt

    def create_update_rule(self) -> UpdateRule:
        return RMSpropRule(self.hyperparam)
