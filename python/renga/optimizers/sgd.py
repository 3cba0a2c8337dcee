"""SGD: stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.optimizer import GradientMethod, HyperparameterProxy, UpdateRule, in_one_pass


class SGDRule(UpdateRule):
    """``x -= lr g``."""

    is_elementwise = True

    @in_one_pass
    def update_core_cpu(self, param: Any) -> None:
        _core.optimizers.sgd(param.array, self.gradient_of(param), self.hyperparam.lr)


class SGD(GradientMethod):
    """Stochastic gradient descent: ``x -= lr g``."""

    lr = HyperparameterProxy("lr")

    def __init__(self, lr: float = 0.01) -> None:
        super().__init__()
        self.hyperparam.lr = lr

    def create_update_rule(self) -> UpdateRule:
        return SGDRule(self.hyperparam)
