"""NesterovAG: momentum that looks ahead."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.optimizer import GradientMethod, HyperparameterProxy, UpdateRule, in_one_pass


class NesterovAGRule(UpdateRule):
    """``v = momentum v - lr g; x += momentum² v - (1 + momentum) lr g``."""

    is_elementwise = True

    def init_state(self, param: Any) -> None:
        self.init_zeros(param, "v")

    @in_one_pass
    def update_core_cpu(self, param: Any) -> None:
        hp = self.hyperparam
        _core.optimizers.nesterov_ag(
            param.array, self.gradient_of(param), self.state["v"], hp.lr, hp.momentum
        )

    def next_step(self, param: Any) -> Any:
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

    lr = HyperparameterProxy("lr")
    momentum = HyperparameterProxy("momentum")

    def __init__(self, lr: float = 0.01, momentum: float = 0.9) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.momentum = momentum

    def create_update_rule(self) -> UpdateRule:
        return NesterovAGRule(self.hyperparam)
