"""M-SVAG: momentum, damped where the gradient is noisy."""

from __future__ import annotations

from renga import _core
from renga.core.optimizer import (
    DEFAULT,
    FusedRule,
    GradientMethod,
    with_hyperparameters,
)
from renga.core.parameter import Parameter


class MSVAGRule(FusedRule):
    """``x -= eta (lr m³ / (m² + rho s) + weight_decay_rate x)``."""

    entry = _core.optimizers.entries["msvag"]
    shares_options = True

    def is_maskable(self) -> bool:
        return False  # its step depends on the number of updates

    def options_of(self, param: Parameter) -> dict[str, float | bool]:
        options = super().options_of(param)
        beta = options["beta"]
        power = beta**self.t
        options["correction"] = 1 - power
        options["rho"] = (1 - beta) * (1 + power) / ((1 + beta) * (1 - power))
        return options


@with_hyperparameters
class MSVAG(GradientMethod):
    """Momentum, damped by the fraction of noise in it.

    ``m`` and ``v`` are the running means of the gradient and of its square, corrected
    for their bias; ``s = (v - m²) / (1 - rho)`` is the gradient's variance and ``rho``
    the fraction of it that remains in ``m``. Then
    ``x -= eta (lr m³ / (m² + rho s) + weight_decay_rate x)``.

    Source: Balles and Hennig, "Dissecting Adam", ICML 2018.
    """

    _rule = MSVAGRule
    lr: float = DEFAULT
    beta: float = DEFAULT
    eta: float = DEFAULT
    weight_decay_rate: float = DEFAULT
