"""AdaGrad: steps divided by the size of all gradients so far."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.optimizer import GradientMethod, HyperparameterProxy, UpdateRule, in_one_pass


class AdaGradRule(UpdateRule):
    """``h += g²; x -= lr g / (√h + eps)``."""

    is_elementwise = True

    def init_state(self, param: Any) -> None:
        self.init_zeros(param, "h")

    @in_one_pass
    def update_core_cpu(self, param: Any) -> None:
        hp = self.hyperparam
        _core.optimizers.adagrad(
            param.array, self.gradient_of(param), self.state["h"], hp.lr, hp.eps
        )


class AdaGrad(GradientMethod):
    """Divides each step by the root of the sum of all squared gradients.

    ``h += g²; x -= lr g / (√h + eps)``.

    Source: Duchi, Hazan and Singer, JMLR 12, 2011.
    """

    lr = HyperparameterProxy("lr")
    eps = HyperparameterProxy("eps")

    def __init__(self, lr: float = 0.001, eps: float = 1e-8) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.eps = eps

    def create_update_rule(self) -> UpdateRule:
        return AdaGradRule(self.hyperparam)
