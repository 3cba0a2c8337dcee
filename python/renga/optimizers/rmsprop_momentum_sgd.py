"""From RMSprop to momentum SGD: a warm-up for very large batches."""

from __future__ import annotations

from renga import _core
from renga.core.optimizer import FusedRule, GradientMethod, HyperparameterProxy

_DEFAULT: dict[str, float] = _core.optimizers.entries["rmsprop_momentum_sgd"].defaults


class RMSpropMomentumSGDRule(FusedRule):
    """The step of the blend for one parameter."""

    entry = _core.optimizers.entries["rmsprop_momentum_sgd"]


class RMSpropMomentumSGD(GradientMethod):
    """A blend of momentum SGD and RMSprop.

    ``ms = alpha ms + (1 - alpha) g²``,
    ``v = momentum v - (s + (1 - s) rmsprop_rate / (√ms + eps)) g; x += lr v`` with
    ``s = sgd_share``. The extension ``RMSpropWarmup`` raises it from nearly 0 to 1.

    Source: Akiba, Suzuki and Fukuda, arXiv:1711.04325.
    """

    _rule = RMSpropMomentumSGDRule
    lr = HyperparameterProxy("lr")
    momentum = HyperparameterProxy("momentum")
    alpha = HyperparameterProxy("alpha")
    eps = HyperparameterProxy("eps")
    rmsprop_rate = HyperparameterProxy("rmsprop_rate")
    sgd_share = HyperparameterProxy("sgd_share")

    def __init__(
        self,
        lr: float = _DEFAULT["lr"],
        momentum: float = _DEFAULT["momentum"],
        alpha: float = _DEFAULT["alpha"],
        eps: float = _DEFAULT["eps"],
        rmsprop_rate: float = _DEFAULT["rmsprop_rate"],
        sgd_share: float = _DEFAULT["sgd_share"],
    ) -> None:
        super().__init__()
        self.hyperparam.lr = lr
        self.hyperparam.momentum = momentum
        self.hyperparam.alpha = alpha
        self.hyperparam.eps = eps
        self.hyperparam.rmsprop_rate = rmsprop_rate
        self.hyperparam.sgd_share = sgd_share
