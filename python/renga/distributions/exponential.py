"""Exponential: the time until something that can happen at any moment."""

from __future__ import annotations

import renga.functions as F
from renga.core.distribution import Univariate, as_parameter, register_kl, within
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_array, as_variable


class Exponential(Univariate):
    """``p(x) = lam exp(-lam x)`` for ``x ≥ 0``."""

    support = "positive"
    parameter_names = ("lam",)

    def __init__(self, lam: Operand) -> None:
        self.lam = as_parameter(lam)

    @property
    def mean(self) -> Variable:
        return 1 / self.lam

    @property
    def variance(self) -> Variable:
        return 1 / F.square(self.lam)

    @property
    def entropy(self) -> Variable:
        return 1 - F.log(self.lam)

    def log_prob(self, x: ArrayLike) -> Variable:
        return within(as_array(x) >= 0, F.log(self.lam) - self.lam * x)

    def cdf(self, x: ArrayLike) -> Variable:
        x = as_variable(x)
        return -F.expm1(-self.lam * within(x.array >= 0, x, 0))

    def icdf(self, x: ArrayLike) -> Variable:
        return -F.log1p(-x) / self.lam

    def sample_n(self, n: int) -> Variable:
        noise = self._draw(self.xp.random.exponential, n, self.lam.dtype, 1)
        return noise / self.lam


@register_kl(Exponential, Exponential)
def _kl_exponential(dist1: Exponential, dist2: Exponential) -> Variable:
    ratio = dist2.lam / dist1.lam
    return ratio - F.log(ratio) - 1
