"""Poisson: the number of events in a fixed time."""

from __future__ import annotations

import renga.functions as F
from renga.core.distribution import Univariate, as_parameter, register_kl
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_array, as_variable


class Poisson(Univariate):
    """``p(x) = lam^x exp(-lam) / x!`` for ``x = 0, 1, 2, …``.

    ``log_prob`` has no gradient with respect to ``x``.
    """

    support = "non negative integer"
    parameter_names = ("lam",)

    def __init__(self, lam: Operand) -> None:
        self.lam = as_parameter(lam)

    @property
    def mean(self) -> Variable:
        return self.lam

    variance = mean

    def log_prob(self, x: ArrayLike) -> Variable:
        x = F.cast(as_variable(as_array(x)), self.lam.dtype)
        return x * F.log(self.lam) - F.lgamma(x + 1) - self.lam

    def sample_n(self, n: int) -> Variable:
        drawn = self._draw(self.xp.random.poisson, n, self.lam.dtype, self.lam.array)
        return Variable(drawn, requires_grad=False)


@register_kl(Poisson, Poisson)
def _kl_poisson(dist1: Poisson, dist2: Poisson) -> Variable:
    return dist1.lam * F.log(dist1.lam / dist2.lam) - dist1.lam + dist2.lam
