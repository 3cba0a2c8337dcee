"""SGD: stochastic gradient descent."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.optimizer import FusedRule, GradientMethod, HyperparameterProxy
from renga.core.parameter import Parameter
from renga.optimizer_hooks.gradient_change import scale_of

_DEFAULT: dict[str, float] = _core.optimizers.entries["sgd"].defaults


class SGDRule(FusedRule):
    """``x -= lr g``."""

    entry = _core.optimizers.entries["sgd"]

    def next_step(self, param: Parameter) -> _core.optimizers.ScaledStep | None:
        grad = param.grad
        if grad is None:
            return None
        if self.updates_in_fp32(param):
            grad = grad.astype(numpy.float32)
        scale = -self.hyperparam.lr / scale_of(param)
        return _core.optimizers.ScaledStep(grad, scale)


class SGD(GradientMethod):
    """Stochastic gradient descent: ``x -= lr g``."""

    _rule = SGDRule
    lr = HyperparameterProxy("lr")

    def __init__(self, lr: float = _DEFAULT["lr"]) -> None:
        super().__init__()
        self.hyperparam.lr = lr
