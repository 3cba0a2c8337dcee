"""RMSprop: steps divided by the recent size of the gradient."""

from __future__ import annotations

from renga import _core
from renga.core.optimizer import FusedRule, GradientMethod, HyperparameterProxy
from renga.core.parameter import Parameter

_DEFAULT: dict[str, float] = _core.optimizers.entries["rmsprop"].defaults


class RMSpropRule(FusedRule):
    """``ms = alpha ms + (1 - alpha) g²; x -= lr g / (√ms + eps)``."""

    entry = _core.optimizers.entries["rmsprop"]
    shares_options = True

    def options_of(self, param: Parameter) -> dict[str, float | bool]:
        eps = self.hyperparam.eps
        if eps != 0 and param.dtype.type(eps) == 0:
            raise ValueError(
                f"eps of RMSprop optimizer is too small for {param.dtype} ({eps})"
            )
        return super().options_of(param)


class RMSprop(GradientMethod):
    """Divides each step by a running root mean square of the gradient.

    ``ms = alpha ms + (1 - alpha) g²; x -= lr g / (√ms + eps)``, or with
    ``eps_inside_sqrt`` ``x -= lr g / √(ms + eps)``.

    An update raises ValueError where ``eps`` is zero in the parameter's dtype.

    Source: Tieleman and Hinton, Coursera lecture 6.5, 2012.
    """

    _rule = RMSpropRule
    lr = HyperparameterProxy("lr")
    alpha = HyperparameterProxy("alpha")
    eps = HyperparameterProxy("eps")
    eps_inside_sqrt = HyperparameterProxy("eps_inside_sqrt")

    def __init__(
        self,
        lr: float = _DEFAULT["lr"],
        alpha: float = _DEFAULT["alpha"],
        eps: float = _DEFAULT["eps"],
        eps_inside_sqrt: bool = bool(_DEFAULT["eps_inside_sqrt"]),
    ) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.alpha = alpha
        self.hyperparam.eps = eps
        self.hyperparam.eps_inside_sqrt = eps_inside_sqrt
