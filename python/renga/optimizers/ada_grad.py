"""AdaGrad: steps divided by the size of all gradients so far."""

from __future__ import annotations

from renga import _core
from renga.core.optimizer import FusedRule, GradientMethod, HyperparameterProxy

_DEFAULT: dict[str, float] = _core.optimizers.entries["adagrad"].defaults


class AdaGradRule(FusedRule):
    """``h += g²; x -= lr g / (√h + eps)``."""

    entry = _core.optimizers.entries["adagrad"]


class AdaGrad(GradientMethod):
    """Divides each step by the root of the sum of all squared gradients.

    ``h += g²; x -= lr g / (√h + eps)``.

    Source: Duchi, Hazan and Singer, JMLR 12, 2011.
    """

    _rule = AdaGradRule
    lr = HyperparameterProxy("lr")
    eps = HyperparameterProxy("eps")

    def __init__(
        self, lr: float = _DEFAULT["lr"], eps: float = _DEFAULT["eps"]
    ) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.eps = eps
