"""Pareto: a power law above a smallest value."""

from __future__ import annotations

import math

import renga.functions as F
from renga.core.distribution import (
    Univariate,
    as_parameter,
    register_kl,
    within,
)
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_array, as_variable


class Pareto(Univariate):
    """``p(x) = alpha scale^alpha / x^(alpha + 1)`` for ``x ≥ scale``."""

    support = "[scale, inf]"
    parameter_names = ("scale", "alpha")

    def __init__(self, scale: Operand, alpha: Operand) -> None:
        self.scale = as_parameter(scale)
        self.alpha = as_parameter(alpha)

    @property
    def mean(self) -> Variable:
        value = self.alpha * self.scale / (self.alpha - 1)
        return within(self.alpha.array > 1, value, math.inf)

    @property
    def mode(self) -> Variable:
        return self._broadcast(self.scale)

    @property
    def variance(self) -> Variable:
        alpha = self.alpha
        spread = alpha / (F.square(alpha - 1) * (alpha - 2))
        return within(alpha.array > 2, F.square(self.scale) * spread, math.inf)

    @property
    def entropy(self) -> Variable:
        return F.log(self.scale / self.alpha) + 1 / self.alpha + 1

    def log_prob(self, x: ArrayLike) -> Variable:
        density = self.alpha * F.log(self.scale / x) + F.log(self.alpha / x)
        return within(as_array(x) >= self.scale.array, density)

    def cdf(self, x: ArrayLike) -> Variable:
        above = self.scale + F.relu(as_variable(x) - self.scale)
        return -F.expm1(self.alpha * F.log(self.scale / above))

    def icdf(self, x: ArrayLike) -> Variable:
        return self.scale * F.exp(-F.log1p(-x) / self.alpha)

    def sample_n(self, n: int) -> Variable:
        noise = self._draw(self.xp.random.exponential, n, self.scale.dtype, 1)
        return self.scale * F.exp(noise / self.alpha)


@register_kl(Pareto, Pareto)
def _kl_pareto(dist1: Pareto, dist2: Pareto) -> Variable:
    ratio = dist2.alpha / dist1.alpha
    scales = dist2.alpha * F.log(dist1.scale / dist2.scale)
    covered = dist1.scale.array >= dist2.scale.array
    return within(covered, scales - F.log(ratio) + ratio - 1, math.inf)
