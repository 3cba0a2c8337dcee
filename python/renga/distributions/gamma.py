"""Gamma: the time until the k-th event."""

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


class Gamma(Univariate):
    """``p(x) = x^(k - 1) exp(-x / theta) / (Γ(k) theta^k)`` for ``x ≥ 0``.

    Gradients of samples reach ``theta`` only.
    """

    support = "positive"
    parameter_names = ("k", "theta")

    def __init__(self, k: Operand, theta: Operand) -> None:
        self.k = as_parameter(k)
        self.theta = as_parameter(theta)

    @property
    def mean(self) -> Variable:
        return self.k * self.theta

    @property
    def variance(self) -> Variable:
        return self.k * F.square(self.theta)

    @property
    def entropy(self) -> Variable:
        k = self.k
        return k + F.log(self.theta) + F.lgamma(k) + (1 - k) * F.digamma(k)

    def log_prob(self, x: ArrayLike) -> Variable:
        density = (self.k - 1) * F.log(x) - x / self.theta
        log_normalizer = F.lgamma(self.k) + self.k * F.log(self.theta)
        return within(as_array(x) >= 0, density - log_normalizer)

    def sample_n(self, n: int) -> Variable:
        noise = self._draw(self.xp.random.gamma, n, self.theta.dtype, self.k.array, 1.0)
        return self.theta * noise


@register_kl(Gamma, Gamma)
def _kl_gamma(dist1: Gamma, dist2: Gamma) -> Variable:
    k1, k2 = dist1.k, dist2.k
    ratio = dist1.theta / dist2.theta
    shapes = (k1 - k2) * F.digamma(k1) - F.lgamma(k1) + F.lgamma(k2)
    return shapes - k2 * F.log(ratio) + k1 * (ratio - 1)
