"""Beta distribution."""

from __future__ import annotations

import renga.functions as F
from renga.core.distribution import (
    Univariate,
    as_parameter,
    register_kl,
    within,
)
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_array


def _log_beta(a: Variable, b: Variable) -> Variable:
    return F.lgamma(a) + F.lgamma(b) - F.lgamma(a + b)


class Beta(Univariate):
    """``p(x) = x^(a - 1) (1 - x)^(b - 1) / B(a, b)`` from 0 to 1."""

    support = "[0, 1]"
    parameter_names = ("a", "b")

    def __init__(self, a: Operand, b: Operand) -> None:
        self.a = as_parameter(a)
        self.b = as_parameter(b)

    @property
    def mean(self) -> Variable:
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> Variable:
        total = self.a + self.b
        return self.a * self.b / (F.square(total) * (total + 1))

    @property
    def entropy(self) -> Variable:
        a, b = self.a, self.b
        logs = (a - 1) * F.digamma(a) + (b - 1) * F.digamma(b)
        return _log_beta(a, b) - logs + (a + b - 2) * F.digamma(a + b)

    def log_prob(self, x: ArrayLike) -> Variable:
        inside = (as_array(x) >= 0) & (as_array(x) <= 1)
        density = (self.a - 1) * F.log(x) + (self.b - 1) * F.log1p(-x)
        return within(inside, density - _log_beta(self.a, self.b))

    def sample_n(self, n: int) -> Variable:
        drawn = self._draw(
            self.xp.random.beta, n, self.a.dtype, self.a.array, self.b.array
        )
        return Variable(drawn, requires_grad=False)


@register_kl(Beta, Beta)
def _kl_beta(dist1: Beta, dist2: Beta) -> Variable:
    a, b = dist1.a - dist2.a, dist1.b - dist2.b
    log_normalizer = _log_beta(dist2.a, dist2.b) - _log_beta(dist1.a, dist1.b)
    shapes = a * F.digamma(dist1.a) + b * F.digamma(dist1.b)
    return log_normalizer + shapes - (a + b) * F.digamma(dist1.a + dist1.b)
