"""M-SVAG: momentum, damped where the gradient is noisy."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.optimizer import GradientMethod, HyperparameterProxy, UpdateRule, in_one_pass


class MSVAGRule(UpdateRule):
    """``x -= eta (lr m³ / (m² + rho s) + weight_decay_rate x)``."""

    is_elementwise = True

    def init_state(self, param: Any) -> None:
        self.init_zeros(param, "m", "v")

    def is_maskable(self) -> bool:
        return False  # its step depends on the number of updates

    @in_one_pass
    def update_core_cpu(self, param: Any) -> None:
        hp = self.hyperparam
        power = hp.beta**self.t
        correction = 1 - power
        rho = (1 - hp.beta) * (1 + power) / ((1 + hp.beta) * (1 - power))
        _core.optimizers.msvag(
            param.array,
            self.gradient_of(param),
            self.state["m"],
            self.state["v"],
            hp.lr,
            hp.beta,
            correction,
            rho,
            hp.eta,
            hp.weight_decay_rate,
        )


class MSVAG(GradientMethod):
    """Momentum, damped by the fraction of noise in it.

    ``m`` and ``v`` are the running means of the gradient and of its square, corrected
    for their bias; ``s = (v - m²) / (1 - rho)`` is the gradient's variance and ``rho``
    the fraction of it that remains in ``m``. Then
    ``x -= eta (lr m³ / (m² + rho s) + weight_decay_rate x)``.

    Source: Balles and Hennig, "Dissecting Adam", ICML 2018.
    """

    lr = HyperparameterProxy("lr")
    beta = HyperparameterProxy("beta")
    eta = HyperparameterProxy("eta")
    weight_decay_rate = HyperparameterProxy("weight_decay_rate")

    def __init__(
        self,
        lr: float = 0.1,
        beta: float = 0.9,
        eta: float = 1.0,
        weight_decay_rate: float = 0,
    ) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.beta = beta
        self.hyperparam.eta = eta
        self.hyperparam.weight_decay_rate = weight_decay_rate

    def create_update_rule(self) -> UpdateRule:
        return MSVAGRule(self.hyperparam)
