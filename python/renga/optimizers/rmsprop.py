"""Steps divided by the size of gradients: RMSprop, what it came from, and its kin."""

from __future__ import annotations

from renga import _core
from renga.core.optimizer import FusedRule, GradientMethod, HyperparameterProxy
from renga.core.parameter import Parameter

_ADA_GRAD: dict[str, float] = _core.optimizers.entries["adagrad"].defaults


class AdaGradRule(FusedRule):
    """``h += g²; x -= lr g / (√h + eps)``."""

    entry = _core.optimizers.entries["adagrad"]


class AdaGrad(GradientMethod):
    """Divides each step by the root of the sum of all squared gradients.

    ``h += g²; x -= lr g / (√h + eps)``.

    Source: Duchi, Hazan and Singer, JMLR 12, 2011.
    """

    _rule = AdaGradRule
    lr = HyperparameterProxy("lr")
    eps = HyperparameterProxy("eps")

    def __init__(
        self, lr: float = _ADA_GRAD["lr"], eps: float = _ADA_GRAD["eps"]
    ) -> None:
        super().__init__(lr=lr, eps=eps)


_ADA_DELTA: dict[str, float] = _core.optimizers.entries["adadelta"].defaults


class AdaDeltaRule(FusedRule):
    """``dx = √((msdx + eps) / (msg + eps)) g; x -= dx``."""

    entry = _core.optimizers.entries["adadelta"]


class AdaDelta(GradientMethod):
    """Scales the gradient by the recent size of steps over that of gradients.

    ``msg = rho msg + (1 - rho) g²; dx = √((msdx + eps) / (msg + eps)) g;
    msdx = rho msdx + (1 - rho) dx²; x -= dx``.

    Source: Zeiler, arXiv 1212.5701.
    """

    _rule = AdaDeltaRule
    rho = HyperparameterProxy("rho")
    eps = HyperparameterProxy("eps")

    def __init__(
        self, rho: float = _ADA_DELTA["rho"], eps: float = _ADA_DELTA["eps"]
    ) -> None:
        super().__init__(rho=rho, eps=eps)


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


class RMSprop(GradientMethod):
    """Divides each step by a running root mean square of the gradient.

    ``ms = alpha ms + (1 - alpha) g²; x -= lr g / (√ms + eps)``, or with
    ``eps_inside_sqrt`` ``x -= lr g / √(ms + eps)``.

    An update raises ValueError where ``eps`` is zero in the parameter's dtype.

    Source: Tieleman and Hinton, Coursera lecture 6.5, 2012.
    """

    _rule = RMSpropRule
    lr = HyperparameterProxy("lr")
    alpha = HyperparameterProxy("alpha")
    eps = HyperparameterProxy("eps")
    eps_inside_sqrt = HyperparameterProxy("eps_inside_sqrt")

    def __init__(
        self,
        lr: float = _RMSPROP["lr"],
        alpha: float = _RMSPROP["alpha"],
        eps: float = _RMSPROP["eps"],
        eps_inside_sqrt: bool = bool(_RMSPROP["eps_inside_sqrt"]),
    ) -> None:
        super().__init__(lr=lr, alpha=alpha, eps=eps, eps_inside_sqrt=eps_inside_sqrt)


_RMSPROP_GRAVES: dict[str, float] = _core.optimizers.entries["rmsprop_graves"].defaults


class RMSpropGravesRule(FusedRule):
    """``delta = momentum delta - lr g / √(n - m² + eps); x += delta``."""

    entry = _core.optimizers.entries["rmsprop_graves"]


class RMSpropGraves(GradientMethod):
    """RMSprop that divides by the gradient's deviation, and has momentum.

    ``n += (1 - alpha) (g² - n); m += (1 - alpha) (g - m);
    delta = momentum delta - lr g / √(n - m² + eps); x += delta``.

    Source: Graves, arXiv 1308.0850, equations 38 to 41.
    """

    _rule = RMSpropGravesRule
    lr = HyperparameterProxy("lr")
    alpha = HyperparameterProxy("alpha")
    momentum = HyperparameterProxy("momentum")
    eps = HyperparameterProxy("eps")

    def __init__(
        self,
        lr: float = _RMSPROP_GRAVES["lr"],
        alpha: float = _RMSPROP_GRAVES["alpha"],
        momentum: float = _RMSPROP_GRAVES["momentum"],
        eps: float = _RMSPROP_GRAVES["eps"],
    ) -> None:
        super().__init__(lr=lr, alpha=alpha, momentum=momentum, eps=eps)


_RMSPROP_MOMENTUM_SGD: dict[str, float] = _core.optimizers.entries[
    "rmsprop_momentum_sgd"
].defaults


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
        lr: float = _RMSPROP_MOMENTUM_SGD["lr"],
        momentum: float = _RMSPROP_MOMENTUM_SGD["momentum"],
        alpha: float = _RMSPROP_MOMENTUM_SGD["alpha"],
        eps: float = _RMSPROP_MOMENTUM_SGD["eps"],
        rmsprop_rate: float = _RMSPROP_MOMENTUM_SGD["rmsprop_rate"],
        sgd_share: float = _RMSPROP_MOMENTUM_SGD["sgd_share"],
    ) -> None:
        super().__init__(
            lr=lr,
            momentum=momentum,
            alpha=alpha,
            eps=eps,
            rmsprop_rate=rmsprop_rate,
            sgd_share=sgd_share,
        )


_SMORMS3: dict[str, float] = _core.optimizers.entries["smorms3"].defaults


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
        self, lr: float = _SMORMS3["lr"], eps: float = _SMORMS3["eps"]
    ) -> None:
        super().__init__(lr=lr, eps=eps)
