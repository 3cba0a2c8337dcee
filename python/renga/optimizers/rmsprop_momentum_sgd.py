"""From RMSprop to momentum SGD: a warm-up for very large batches."""

from __future__ import annotations

from renga.core.optimizer import GradientMethod, HyperparameterProxy, UpdateRule
from renga.core.parameter import Parameter


class RMSpropMomentumSGDRule(UpdateRule):
    """``v = momentum v - (share + (1 - share) rate / (√ms + eps)) g; x += lr v``."""

    is_elementwise = True

    def init_state(self, param: Parameter) -> None:
        self.init_zeros(param, "ms", "v")

    def update_core_cpu(self, param: Parameter) -> None:
        hp, g = self.hyperparam, param.grad
        ms, v = self.state["ms"], self.state["v"]
        ms += (1 - hp.alpha) * (g * g - ms)
        v *= hp.momentum
        v -= hp.sgd_share * g
        if hp.sgd_share < 1:
            rate = (1 - hp.sgd_share) * hp.rmsprop_rate
            v -= rate * g / (param.xp.sqrt(ms) + hp.eps)
        param.array[...] += hp.lr * v

    update_core_gpu = update_core_cpu


class RMSpropMomentumSGD(GradientMethod):
    """A blend of momentum SGD and RMSprop.

    ``ms = alpha ms + (1 - alpha) g²``,
    ``v = momentum v - (s + (1 - s) rmsprop_rate / (√ms + eps)) g; x += lr v`` with
    ``s = sgd_share``. The extension ``RMSpropWarmup`` raises it from nearly 0 to 1.

    Source: Akiba, Suzuki and Fukuda, arXiv:1711.04325.
    """

    lr = HyperparameterProxy("lr")
    momentum = HyperparameterProxy("momentum")
    alpha = HyperparameterProxy("alpha")
    eps = HyperparameterProxy("eps")
    rmsprop_rate = HyperparameterProxy("rmsprop_rate")
    sgd_share = HyperparameterProxy("sgd_share")

    def __init__(
        self,
        lr: float = 0.01,
        momentum: float = 0.9,
        alpha: float = 0.99,
        eps: float = 1e-8,
        rmsprop_rate: float = 0.0003,
        sgd_share: float = 1.0,
    ) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.momentum = momentum
        self.hyperparam.alpha = alpha
        self.hyperparam.eps = eps
        self.hyperparam.rmsprop_rate = rmsprop_rate
        self.hyperparam.sgd_share = sgd_share

    def create_update_rule(self) -> UpdateRule:
        return RMSpropMomentumSGDRule(self.hyperparam)
