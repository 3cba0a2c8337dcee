"""Stochastic gradient descent, without and with a velocity."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.optimizer import (
    DEFAULT,
    FusedRule,
    GradientMethod,
    with_hyperparameters,
)
from renga.core.parameter import Parameter
from renga.optimizer_hooks.gradient_change import scale_of


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


@with_hyperparameters
class SGD(GradientMethod):
    """Stochastic gradient descent: ``x -= lr g``."""

    _rule = SGDRule
    lr: float = DEFAULT


class MomentumSGDRule(FusedRule):
    """``v = momentum v - lr g; x += v``."""

    entry = _core.optimizers.entries["momentum_sgd"]

    def next_step(self, param: Parameter) -> _core.optimizers.ScaledStep:
        return _core.optimizers.ScaledStep(self.state["v"], 1.0)


@with_hyperparameters
class MomentumSGD(GradientMethod):
    """Gradient descent with momentum: ``v = momentum v - lr g; x += v``.

    Source: Polyak, 1964; Sutskever et al., ICML 2013.
    """

    _rule = MomentumSGDRule
    lr: float = DEFAULT
    momentum: float = DEFAULT


class CorrectedMomentumSGDRule(FusedRule):
    """``v = momentum v - g; x += lr v``."""

    entry = _core.optimizers.entries["corrected_momentum_sgd"]


@with_hyperparameters
class CorrectedMomentumSGD(GradientMethod):
    """Momentum whose velocity does not hold the learning rate.

    ``v = momentum v - g; x += lr v``: a new ``lr`` acts on the whole velocity at once.

    Source: Goyal et al., arXiv 1706.02677, section 3.
    """

    _rule = CorrectedMomentumSGDRule
    lr: float = DEFAULT
    momentum: float = DEFAULT


class NesterovAGRule(FusedRule):
    """``v = momentum v - lr g; x += momentum² v - (1 + momentum) lr g``."""

    entry = _core.optimizers.entries["nesterov_ag"]

    def next_step(self, param: Parameter) -> _core.optimizers.ScaledStep:
        # A velocity that a constant gradient has settled, v = momentum v - lr g, makes
        # the update momentum² v - (1 + momentum) lr g
        # = momentum² v + (1 + momentum) (1 - momentum) v = v.
        return _core.optimizers.ScaledStep(self.state["v"], 1.0)


@with_hyperparameters
class NesterovAG(GradientMethod):
    """Nesterov's accelerated gradient.

    ``v = momentum v - lr g; x += momentum² v - (1 + momentum) lr g``

    Source: Bengio et al., arXiv:1212.0901, equation 7. There the second formula has
    the velocity of the step before; here it has the new one, as in Chainer, whose
    learning rates and results carry over.
    """

    _rule = NesterovAGRule
    lr: float = DEFAULT
    momentum: float = DEFAULT
