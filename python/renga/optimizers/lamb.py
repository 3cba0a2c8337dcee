"""LAMB: Adam with steps scaled to the norm of each parameter."""

from __future__ import annotations

import math
from typing import Any

from renga.optimizer import GradientMethod, HyperparameterProxy, UpdateRule
from renga.optimizer_hooks.norm import squared_norm


class LAMBRule(UpdateRule):
    """The step of LAMB for one parameter."""

    def init_state(self, param: Any) -> None:
        self.init_zeros(param, "m", "v")

    def update_core(self, param: Any) -> None:
        if param.grad is None:
            return
        hp, xp, x, g = self.hyperparam, param.xp, param.array, param.grad
        m, v = self.state["m"], self.state["v"]
        m += (1 - hp.beta1) * (g - m)
        v += (1 - hp.beta2) * (g * g - v)
        step = (m / (1 - hp.beta1**self.t)) / (
            xp.sqrt(v / (1 - hp.beta2**self.t)) + hp.eps
        )
        step += hp.weight_decay_rate * x
        x_norm = math.sqrt(squared_norm(param, x))
        step_norm = math.sqrt(squared_norm(param, step))
        trust = x_norm / step_norm if x_norm > 0 and step_norm > 0 else 1.0
        x -= hp.alpha * trust * step


class LAMB(GradientMethod):
    """Adam's step, scaled for each parameter to the parameter's norm.

    ``r = m̂ / (√v̂ + eps) + weight_decay_rate x; x -= alpha |x| / |r| r`` with Adam's
    moments corrected for their bias. Where ``x`` or ``r`` is zero, the step is
    ``alpha r``. For very large batches.

    Source: You et al., ICLR 2020.
    """

    alpha = HyperparameterProxy("alpha")
    beta1 = HyperparameterProxy("beta1")
    beta2 = HyperparameterProxy("beta2")
    eps = HyperparameterProxy("eps")
    weight_decay_rate = HyperparameterProxy("weight_decay_rate")

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay_rate: float = 0.01,
    ) -> None:
        super().__init__()
        self.hyperparam.alpha = alpha
        self.hyperparam.beta1 = beta1
        self.hyperparam.beta2 = beta2
        self.hyperparam.eps = eps
        self.hyperparam.weight_decay_rate = weight_decay_rate

    def create_update_rule(self) -> UpdateRule:
        return LAMBRule(self.hyperparam)
