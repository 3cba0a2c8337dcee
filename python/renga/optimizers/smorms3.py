"""SMORMS3: RMSprop whose averaging window follows the noise of the gradient."""

from __future__ import annotations

from renga import _core
from renga.core.optimizer import FusedRule, GradientMethod, HyperparameterProxy
from renga.core.parameter import Parameter

_DEFAULT: dict[str, float] = _core.optimizers.entries["smorms3"].defaults


class SMORMS3Rule(FusedRule):
    """``x -= min(lr, m² / (v + eps)) g / (√v + eps)``."""

    entry = _core.optimizers.entries["smorms3"]

    def init_state(self, param: Parameter) -> None:
        self.state["mem"] = param.xp.ones_like(param.array)
        self.init_zeros(param, "g", "g2")


class SMORMS3(GradientMethod):
    """RMSprop with a memory that follows the noise of the gradient.

    ``r = 1 / (mem + 1); m += r (g - m); v += r (g² - v); share = m² / (v + eps);
    mem = 1 + mem (1 - share); x -= min(lr, share) g / (√v + eps)``.

    Source: Funk, "RMSprop loses to SMORMS3", 2015.
    """

    _rule = SMORMS3Rule
    lr = HyperparameterProxy("lr")
    eps = HyperparameterProxy("eps")

    def __init__(
        self, lr: float = _DEFAULT["lr"], eps: float = _DEFAULT["eps"]
    ) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.eps = eps
