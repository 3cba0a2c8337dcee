"""RMSpropGraves: RMSprop by the gradient's variance, with momentum."""

from __future__ import annotations

from renga import _core
from renga.core.optimizer import FusedRule, GradientMethod, HyperparameterProxy

_DEFAULT: dict[str, float] = _core.optimizers.entries["rmsprop_graves"].defaults


class RMSpropGravesRule(FusedRule):
    """``delta = momentum delta - lr g / √(n - m² + eps); x += delta``."""

    entry = _core.optimizers.entries["rmsprop_graves"]


class RMSpropGraves(GradientMethod):
    """RMSprop that divides by the gradient's deviation, and has momentum.

    ``n += (1 - alpha) (g² - n); m += (1 - alpha) (g - m);
    delta = momentum delta - lr g / √(n - m² + eps); x += delta``.

    Source: Graves, arXiv 1308.0850, equations 38 to 41.
    """

    _rule = RMSpropGravesRule
    lr = HyperparameterProxy("lr")
    alpha = HyperparameterProxy("alpha")
    momentum = HyperparameterProxy("momentum")
    eps = HyperparameterProxy("eps")

    def __init__(
        self,
        lr: float = _DEFAULT["lr"],
        alpha: float = _DEFAULT["alpha"],
        momentum: float = _DEFAULT["momentum"],
        eps: float = _DEFAULT["eps"],
    ) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.alpha = alpha
        self.hyperparam.momentum = momentum
        self.hyperparam.eps = eps
