"""CorrectedMomentumSGD: momentum that does not include the learning rate."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.optimizer import GradientMethod, HyperparameterProxy, UpdateRule, in_one_pass


class CorrectedMomentumSGDRule(UpdateRule):
    """``v = momentum v - g; x += lr v``."""

    is_elementwise = True

    def init_state(self, param: Any) -> None:
        self.init_zeros(param, "v")

    @in_one_pass
    def update_core_cpu(self, param: Any) -> None:
        hp = self.hyperparam
        _core.optimizers.corrected_momentum_sgd(
            param.array, self.gradient_of(param), self.state["v"], hp.lr, hp.momentum
        )


class CorrectedMomentumSGD(GradientMethod):
    """Momentum whose velocity does not hold the learning rate.

    ``v = momentum v - g; x += lr v``: a new ``lr`` acts on the whole velocity at once.

    Source: Goyal et al., arXiv 1706.02677, section 3.
    """

    lr = HyperparameterProxy("lr")
    momentum = HyperparameterProxy("momentum")

    def __init__(self, lr: float = 0.01, momentum: float = 0.9) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.momentum = momentum

    def create_update_rule(self) -> UpdateRule:
        return CorrectedMomentumSGDRule(self.hyperparam)
