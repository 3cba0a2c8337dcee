"""Steps divided by the size of gradients: RMSprop, what it came from, and its kin."""

from __future__ import annotations

from renga import _core
from renga.core.optimizer import (
    DEFAULT,
    FusedRule,
    GradientMethod,
    with_hyperparameters,
)
from renga.core.parameter import Parameter


class AdaGradRule(FusedRule):
    """``h += g²; x -= lr g / (√h + eps)``."""

    entry = _core.optimizers.entries["adagrad"]


@with_hyperparameters
class AdaGrad(GradientMethod):
    """Divides each step by the root of the sum of all squared gradients.

    ``h += g²; x -= lr g / (√h + eps)``.

    Source: Duchi, Hazan and Singer, JMLR 12, 2011.
    """

    _rule = AdaGradRule
    lr: float = DEFAULT
    eps: float = DEFAULT


class AdaDeltaRule(FusedRule):
    """``dx = √((msdx + eps) / (msg + eps)) g; x -= dx``."""

    entry = _core.optimizers.entries["adadelta"]


@with_hyperparameters
class AdaDelta(GradientMethod):
    """Scales the gradient by the recent size of steps over that of gradients.

    ``msg = rho msg + (1 - rho) g²; dx = √((msdx + eps) / (msg + eps)) g;
    msdx = rho msdx + (1 - rho) dx²; x -= dx``.

    Source: Zeiler, arXiv 1212.5701.
    """

    _rule = AdaDeltaRule
    rho: float = DEFAULT
    eps: float = DEFAULT


_RMSPROP: dict[str, float] = _core.optimizers.entries["rmsprop"].defaults


class RMSpropRule(FusedRule):
    """``ms = alpha ms + (1 - alpha) g²; x -= lr g / (√ms + eps)``."""

    entry = _core.optimizers.entries["rmsprop"]
    default_values = {**_RMSPROP, "eps_inside_sqrt": bool(_RMSPROP["eps_inside_sqrt"])}
    shares_options = True

    def options_of(self, param: Parameter) -> dict[str, float | bool]:
        eps = self.hyperparam.eps
        if eps != 0 and param.dtype.type(eps) == 0:
            raise ValueError(
                f"eps of RMSprop optimizer is too small for {param.dtype} ({eps})"
            )
        return super().options_of(param)


@with_hyperparameters
class RMSprop(GradientMethod):
    """Divides each step by a running root mean square of the gradient.

    ``ms = alpha ms + (1 - alpha) g²; x -= lr g / (√ms + eps)``, or with
    ``eps_inside_sqrt`` ``x -= lr g / √(ms + eps)``.

    An update raises ValueError where ``eps`` is zero in the parameter's dtype.

    Source: Tieleman and Hinton, Coursera lecture 6.5, 2012.
    """

    _rule = RMSpropRule
    lr: float = DEFAULT
    alpha: float = DEFAULT
    eps: float = DEFAULT
    eps_inside_sqrt: bool = DEFAULT


class RMSpropGravesRule(FusedRule):
    """``delta = momentum delta - lr g / √(n - m² + eps); x += delta``."""

    entry = _core.optimizers.entries["rmsprop_graves"]


@with_hyperparameters
class RMSpropGraves(GradientMethod):
    """RMSprop that divides by the gradient's deviation, and has momentum.

    ``n += (1 - alpha) (g² - n); m += (1 - alpha) (g - m);
    delta = momentum delta - lr g / √(n - m² + eps); x += delta``.

    Source: Graves, arXiv 1308.0850, equations 38 to 41.
    """

    _rule = RMSpropGravesRule
    lr: float = DEFAULT
    alpha: float = DEFAULT
    momentum: float = DEFAULT
    eps: float = DEFAULT


class RMSpropMomentumSGDRule(FusedRule):
    """The step of the blend for one parameter."""

    entry = _core.optimizers.entries["rmsprop_momentum_sgd"]


@with_hyperparameters
class RMSpropMomentumSGD(GradientMethod):
    """A blend of momentum SGD and RMSprop.

    ``ms = alpha ms + (1 - alpha) g²``,
    ``v = momentum v - (s + (1 - s) rmsprop_rate / (√ms + eps)) g; x += lr v`` with
    ``s = sgd_share``. The extension ``RMSpropWarmup`` raises it from nearly 0 to 1.

    Source: Akiba, Suzuki and Fukuda, arXiv:1711.04325.
    """

    _rule = RMSpropMomentumSGDRule
    lr: float = DEFAULT
    momentum: float = DEFAULT
    alpha: float = DEFAULT
    eps: float = DEFAULT
    rmsprop_rate: float = DEFAULT
    sgd_share: float = DEFAULT


class SMORMS3Rule(FusedRule):
    """``x -= min(lr, m² / (v + eps)) g / (√v + eps)``."""

    entry = _core.optimizers.entries["smorms3"]

    def init_state(self, param: Parameter) -> None:
        self.state["mem"] = param.xp.ones_like(param.array)
        self.init_zeros(param, "g", "g2")


@with_hyperparameters
class SMORMS3(GradientMethod):
    """RMSprop with a memory that follows the noise of the gradient.

    ``r = 1 / (mem + 1); m += r (g - m); v += r (g² - v); share = m² / (v + eps);
    mem = 1 + mem (1 - share); x -= min(lr, share) g / (√v + eps)``.

    Source: Funk, "RMSprop loses to SMORMS3", 2015.
    """

    _rule = SMORMS3Rule
    lr: float = DEFAULT
    eps: float = DEFAULT
