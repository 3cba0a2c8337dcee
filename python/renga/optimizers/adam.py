"""Adam and its variants: steps from running moments of the gradient."""

from __future__ import annotations

import math
from typing import Any

from renga import _core
from renga.core.optimizer import (
    DEFAULT,
    FusedRule,
    GradientMethod,
    Hyperparameter,
    with_hyperparameters,
)
from renga.core.parameter import Parameter

_DEFAULT: dict[str, float] = _core.optimizers.entries["adam"].defaults


class AdamRule(FusedRule):
    """The step of Adam for one parameter."""

    shares_options = True
    # In the order of Adam's arguments.
    default_values = {
        "alpha": _DEFAULT["alpha"],
        "beta1": _DEFAULT["beta1"],
        "beta2": _DEFAULT["beta2"],
        "eps": _DEFAULT["eps"],
        "eta": _DEFAULT["eta"],
        "weight_decay_rate": _DEFAULT["weight_decay_rate"],
        "amsgrad": False,
        "adabound": False,
        "final_lr": _DEFAULT["final_lr"],
        "gamma": _DEFAULT["gamma"],
    }

    def __init__(
        self,
        parent_hyperparam: Hyperparameter | None = None,
        *values: float | None,
        **named: float | None,
    ) -> None:
        super().__init__(parent_hyperparam, *values, **named)
        # AdaBound's bounds shrink together with alpha, relative to its initial value.
        self.initial_alpha = self.hyperparam.alpha

    @property
    def entry(self) -> Any:
        name = "amsgrad" if self.hyperparam.amsgrad else "adam"
        return _core.optimizers.entries[name]

    def is_maskable(self) -> bool:
        # The bounds of AdaBound depend on the number of updates too.
        return super().is_maskable() and not self.hyperparam.adabound

    @property
    def alpha_t(self) -> float:
        """``alpha`` corrected for the moments' bias towards zero."""
        return _alpha_t(self.hyperparam, self.t)

    @property
    def lr(self) -> float:
        """Another name of ``alpha_t``."""
        return self.alpha_t

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds of AdaBound on the step size of an element."""
        hp = self.hyperparam
        if not hp.adabound:
            return 0.0, math.inf
        final_lr = hp.final_lr * hp.alpha / self.initial_alpha
        grown = hp.gamma * self.t
        return final_lr * (1 - 1 / (grown + 1)), final_lr * (1 + 1 / grown)

    def next_step(self, param: Parameter) -> _core.optimizers.AdamMoments:
        v = self.state["vhat" if self.hyperparam.amsgrad else "v"]
        return _core.optimizers.AdamMoments(self.state["m"], v, self.options_of(param))

    def options_of(self, param: Parameter) -> dict[str, float]:
        options = super().options_of(param)
        options["alpha"] = self.alpha_t
        options["lower"], options["upper"] = self.bounds
        return options


@with_hyperparameters
class Adam(GradientMethod):
    """Adam: steps from running means of the gradient and of its square.

    ``m += (1 - beta1) (g - m); v += (1 - beta2) (g² - v)`` and
    ``x -= eta (alpha_t m / (√v + eps) + weight_decay_rate x)`` with
    ``alpha_t = alpha √(1 - beta2^t) / (1 - beta1^t)``. ``amsgrad`` replaces ``v`` by
    its maximum so far; ``adabound`` clips ``alpha_t / (√v + eps)`` to bounds that
    converge to ``final_lr`` at the rate ``gamma``.

    Source: Kingma and Ba, ICLR 2015; Reddi et al., ICLR 2018 (AMSGrad); Loshchilov
    and Hutter, ICLR 2019 (AdamW); Luo et al., ICLR 2019 (AdaBound).
    """

    _rule = AdamRule
    alpha: float = DEFAULT
    beta1: float = DEFAULT
    beta2: float = DEFAULT
    eps: float = DEFAULT
    eta: float = DEFAULT
    weight_decay_rate: float = DEFAULT
    amsgrad: bool = DEFAULT
    adabound: bool = DEFAULT
    final_lr: float = DEFAULT
    gamma: float = DEFAULT

    @property
    def alpha_t(self) -> float:
        """``alpha`` corrected for the moments' bias; RuntimeError before an update."""
        return _alpha_t(self.hyperparam, self.t)

    @property
    def lr(self) -> float:
        """Another name of ``alpha_t``; to change it, set ``alpha``."""
        return self.alpha_t

    @lr.setter
    def lr(self, value: float) -> None:
        raise AttributeError(
            f"{type(self).__name__}: the learning rate is called alpha, got lr={value}"
        )


class AdamW(Adam):
    """Adam with decoupled weight decay: ``x -= eta weight_decay_rate x`` at each step.

    The defaults are Chainer's: no decay, and a decay that does not follow ``alpha``.
    PyTorch's ``AdamW(lr, weight_decay=w)`` decays by ``lr w`` with w = 0.01: that is
    ``AdamW(lr, weight_decay_rate=lr * w)`` while lr is constant, and
    ``AdamW(1, eta=lr, weight_decay_rate=w)`` with schedules of ``eta``. Parameters of
    one axis are usually exempt: set ``weight_decay_rate`` of
    ``link.b.update_rule.hyperparam`` to 0.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization, 2017.
    """

    def __init__(
        self,
        alpha: float = _DEFAULT["alpha"],
        beta1: float = _DEFAULT["beta1"],
        beta2: float = _DEFAULT["beta2"],
        eps: float = _DEFAULT["eps"],
        eta: float = _DEFAULT["eta"],
        weight_decay_rate: float = _DEFAULT["weight_decay_rate"],
    ) -> None:
        super().__init__(alpha, beta1, beta2, eps, eta, weight_decay_rate)


class AMSGrad(Adam):
    """Adam with ``amsgrad``."""

    def __init__(
        self,
        alpha: float = _DEFAULT["alpha"],
        beta1: float = _DEFAULT["beta1"],
        beta2: float = _DEFAULT["beta2"],
        eps: float = _DEFAULT["eps"],
        eta: float = _DEFAULT["eta"],
    ) -> None:
        super().__init__(alpha, beta1, beta2, eps, eta, amsgrad=True)


class AdaBound(Adam):
    """Adam with ``adabound``."""

    _amsgrad = False

    def __init__(
        self,
        alpha: float = _DEFAULT["alpha"],
        beta1: float = _DEFAULT["beta1"],
        beta2: float = _DEFAULT["beta2"],
        final_lr: float = _DEFAULT["final_lr"],
        gamma: float = _DEFAULT["gamma"],
        eps: float = _DEFAULT["eps"],
        eta: float = _DEFAULT["eta"],
    ) -> None:
        super().__init__(
            *(alpha, beta1, beta2, eps, eta),
            amsgrad=self._amsgrad,
            adabound=True,
            final_lr=final_lr,
            gamma=gamma,
        )


class AMSBound(AdaBound):
    """Adam with ``amsgrad`` and ``adabound``."""

    _amsgrad = True


def _alpha_t(hyperparam: Any, t: int) -> float:
    if t == 0:
        raise RuntimeError(
            "Can't determine the learning rate of Adam optimizer because the update "
            "steps have not been started."
        )
    hp = hyperparam.get_dict()
    correction = math.sqrt(1 - hp["beta2"] ** t) / (1 - hp["beta1"] ** t)
    return hp["alpha"] * correction
