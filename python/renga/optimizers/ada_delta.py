"""AdaDelta: step sizes from recent steps, without a learning rate."""

from __future__ import annotations

from renga import _core
from renga.core.optimizer import FusedRule, GradientMethod, HyperparameterProxy

_DEFAULT: dict[str, float] = _core.optimizers.entries["adadelta"].defaults


class AdaDeltaRule(FusedRule):
    """``dx = √((msdx + eps) / (msg + eps)) g; x -= dx``."""

    entry = _core.optimizers.entries["adadelta"]


class AdaDelta(GradientMethod):
    """Scales the gradient by the recent size of steps over that of gradients.

    ``msg = rho msg + (1 - rho) g²; dx = √((msdx + eps) / (msg + eps)) g;
    msdx = rho msdx + (1 - rho) dx²; x -= dx``.

    Source: Zeiler, arXiv 1212.5701.
    """

    _rule = AdaDeltaRule
    rho = HyperparameterProxy("rho")
    eps = HyperparameterProxy("eps")

    def __init__(
        self, rho: float = _DEFAULT["rho"], eps: float = _DEFAULT["eps"]
    ) -> None:
        super().__init__()
        self.hyperparam.rho = rho
        self.hyperparam.eps = eps
