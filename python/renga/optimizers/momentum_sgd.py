"""MomentumSGD: gradient descent that keeps a velocity."""

from __future__ import annotations

from renga import _core
from renga.core.optimizer import FusedRule, GradientMethod, HyperparameterProxy
from renga.core.parameter import Parameter

_DEFAULT: dict[str, float] = _core.optimizers.entries["momentum_sgd"].defaults


class MomentumSGDRule(FusedRule):
    """``v = momentum v - lr g; x += v``."""

    entry = _core.optimizers.entries["momentum_sgd"]

    def next_step(self, param: Parameter) -> _core.optimizers.ScaledStep:
        return _core.optimizers.ScaledStep(self.state["v"], 1.0)


class MomentumSGD(GradientMethod):
    """Gradient descent with momentum: ``v = momentum v - lr g; x += v``.

    Source: Polyak, 1964; Sutskever et al., ICML 2013.
    """

    _rule = MomentumSGDRule
    lr = HyperparameterProxy("lr")
    momentum = HyperparameterProxy("momentum")

    def __init__(
        self, lr: float = _DEFAULT["lr"], momentum: float = _DEFAULT["momentum"]
    ) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.momentum = momentum
