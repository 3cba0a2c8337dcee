"""CorrectedMomentumSGD: momentum that does not include the learning rate."""

from __future__ import annotations

from renga import _core
from renga.core.optimizer import FusedRule, GradientMethod, HyperparameterProxy

_DEFAULT: dict[str, float] = _core.optimizers.entries["corrected_momentum_sgd"].defaults


class CorrectedMomentumSGDRule(FusedRule):
    """``v = momentum v - g; x += lr v``."""

    entry = _core.optimizers.entries["corrected_momentum_sgd"]


class CorrectedMomentumSGD(GradientMethod):
    """Momentum whose velocity does not hold the learning rate.

    ``v = momentum v - g; x += lr v``: a new ``lr`` acts on the whole velocity at once.

    Source: Goyal et al., arXiv 1706.02677, section 3.
    """

    _rule = CorrectedMomentumSGDRule
    lr = HyperparameterProxy("lr")
    momentum = HyperparameterProxy("momentum")

    def __init__(
        self, lr: float = _DEFAULT["lr"], momentum: float = _DEFAULT["momentum"]
    ) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.momentum = momentum
