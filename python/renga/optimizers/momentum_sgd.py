"""MomentumSGD: gradient descent that keeps a velocity."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.optimizer import GradientMethod, HyperparameterProxy, UpdateRule, in_one_pass


class MomentumSGDRule(UpdateRule):
    """``v = momentum v - lr g; x += v``."""

    is_elementwise = True

    def init_state(self, param: Any) -> None:
        self.init_zeros(param, "v")

    @in_one_pass
    def update_core_cpu(self, param: Any) -> None:
        hp = self.hyperparam
        _core.optimizers.momentum_sgd(
            param.array, self.gradient_of(param), self.state["v"], hp.lr, hp.momentum
        )

    def next_step(self, param: Any) -> Any:
        return _core.optimizers.ScaledStep(self.state["v"], 1.0)


class MomentumSGD(GradientMethod):
    """Gradient descent with momentum: ``v = momentum v - lr g; x += v``.

    Source: Polyak, 1964; Sutskever et al., ICML 2013.
    """

    lr = HyperparameterProxy("lr")
    momentum = HyperparameterProxy("momentum")

    def __init__(self, lr: float = 0.01, momentum: float = 0.9) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.momentum = momentum

    def create_update_rule(self) -> UpdateRule:
        return MomentumSGDRule(self.hyperparam)
