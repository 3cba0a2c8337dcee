"""Stochastic gradient descent, without and with a velocity."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.optimizer import FusedRule, GradientMethod, HyperparameterProxy
from renga.core.parameter import Parameter
from renga.optimizer_hooks.gradient_change import scale_of

_SGD: dict[str, float] = _core.optimizers.entries["sgd"].defaults


class SGDRule(FusedRule):
    """``x -= lr g``."""

    entry = _core.optimizers.entries["sgd"]

    def next_step(self, param: Parameter) -> _core.optimizers.ScaledStep | None:
        grad = param.grad
        if grad is None:
            return None
        if self.updates_in_fp32(param):
            grad = grad.astype(numpy.float32)
        scale = -self.hyperparam.lr / scale_of(param)
        return _core.optimizers.ScaledStep(grad, scale)


class SGD(GradientMethod):
    """Stochastic gradient descent: ``x -= lr g``."""

    _rule = SGDRule
    lr = HyperparameterProxy("lr")

    def __init__(self, lr: float = _SGD["lr"]) -> None:
        super().__init__(lr=lr)


_MOMENTUM_SGD: dict[str, float] = _core.optimizers.entries["momentum_sgd"].defaults


class MomentumSGDRule(FusedRule):
    """``v = momentum v - lr g; x += v``."""

    entry = _core.optimizers.entries["momentum_sgd"]

    def next_step(self, param: Parameter) -> _core.optimizers.ScaledStep:
        return _core.optimizers.ScaledStep(self.state["v"], 1.0)


class MomentumSGD(GradientMethod):
    """Gradient descent with momentum: ``v = momentum v - lr g; x += v``.

    Source: Polyak, 1964; Sutskever et al., ICML 2013.
    """

    _rule = MomentumSGDRule
    lr = HyperparameterProxy("lr")
    momentum = HyperparameterProxy("momentum")

    def __init__(
        self,
        lr: float = _MOMENTUM_SGD["lr"],
        momentum: float = _MOMENTUM_SGD["momentum"],
    ) -> None:
        super().__init__(lr=lr, momentum=momentum)


_CORRECTED_MOMENTUM_SGD: dict[str, float] = _core.optimizers.entries[
    "corrected_momentum_sgd"
].defaults


class CorrectedMomentumSGDRule(FusedRule):
    """``v = momentum v - g; x += lr v``."""

    entry = _core.optimizers.entries["corrected_momentum_sgd"]


class CorrectedMomentumSGD(GradientMethod):
    """Momentum whose velocity does not hold the learning rate.

    ``v = momentum v - g; x += lr v``: a new ``lr`` acts on the whole velocity at once.

    Source: Goyal et al., arXiv 1706.02677, section 3.
    """

    _rule = CorrectedMomentumSGDRule
    lr = HyperparameterProxy("lr")
    momentum = HyperparameterProxy("momentum")

    def __init__(
        self,
        lr: float = _CORRECTED_MOMENTUM_SGD["lr"],
        momentum: float = _CORRECTED_MOMENTUM_SGD["momentum"],
    ) -> None:
        super().__init__(lr=lr, momentum=momentum)


_NESTEROV_AG: dict[str, float] = _core.optimizers.entries["nesterov_ag"].defaults


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
        self, lr: float = _NESTEROV_AG["lr"], momentum: float = _NESTEROV_AG["momentum"]
    ) -> None:
        super().__init__(lr=lr, momentum=momentum)
