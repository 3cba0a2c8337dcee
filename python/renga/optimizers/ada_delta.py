"""AdaDelta: step sizes from recent steps, without a learning rate."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.optimizer import GradientMethod, HyperparameterProxy, UpdateRule, in_one_pass


class AdaDeltaRule(UpdateRule):
    """``dx = √((msdx + eps) / (msg + eps)) g; x -= dx``."""

    is_elementwise = True

    def init_state(self, param: Any) -> None:
        self.init_zeros(param, "msg", "msdx")

    @in_one_pass
    def update_core_cpu(self, param: Any) -> None:
        hp = self.hyperparam
        _core.optimizers.adadelta(
            param.array,
            self.gradient_of(param),
            self.state["msg"],
            self.state["msdx"],
            hp.rho,
            hp.eps,
        )


class AdaDelta(GradientMethod):
    """Scales the gradient by the recent size of steps over that of gradients.

    ``msg = rho msg + (1 - rho) g²; dx = √((msdx + eps) / (msg + eps)) g;
    msdx = rho msdx + (1 - rho) dx²; x -= dx``.

    Source: Zeiler, arXiv 1212.5701.
    """

    rho = HyperparameterProxy("rho")
    eps = HyperparameterProxy("eps")

    def __init__(self, rho: float = 0.95, eps: float = 1e-6) -> None:
        super().__init__()
        self.hyperparam.rho = rho
        self.hyperparam.eps = eps

    def create_update_rule(self) -> UpdateRule:
        return AdaDeltaRule(self.hyperparam)
