"""NesterovAG: momentum that looks ahead."""

from __future__ import annotations

from renga import _core
from renga.core.optimizer import FusedRule, GradientMethod, HyperparameterProxy
from renga.core.parameter import Parameter

_DEFAULT: dict[str, float] = _core.optimizers.entries["nesterov_ag"].defaults


class NesterovAGRule(FusedRule):
    """``v = momentum v - lr g; x += momentum² v - (1 + momentum) lr g``."""

    entry = _core.optimizers.entries["nesterov_ag"]

    def next_step(self, param: Parameter) -> _core.optimizers.ScaledStep:
        # A velocity that a constant gradient has settled, v = momentum v - lr g, makes
        # the update momentum² v - (1 + momentum) lr g
        # = momentum² v + (1 + momentum) (1 - momentum) v = v.
        return _core.optimizers.ScaledStep(self.state["v"], 1.0)


class NesterovAG(GradientMethod):
    """Nesterov's accelerated gradient.

    ``v = momentum v - lr g; x += momentum² v - (1 + momentum) lr g``

    Source: Bengio et al., arXiv:1212.0901, equation 7. There the second formula has
    the velocity of the step before; here it has the new one, as in Chainer, whose
    learning rates and results carry over.
    """

    _rule = NesterovAGRule
    lr = HyperparameterProxy("lr")
    momentum = HyperparameterProxy("momentum")

    def __init__(
        self, lr: float = _DEFAULT["lr"], momentum: float = _DEFAULT["momentum"]
    ) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.momentum = momentum
