"""Gamma, and its special cases Chisquare and Exponential."""

from __future__ import annotations

import math

import renga.functions as F
from renga.core.distribution import Univariate, as_parameter, register_kl, within
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_array, as_variable


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


class Chisquare(Univariate):
    """``p(x) = x^(k/2 - 1) exp(-x / 2) / (2^(k/2) Γ(k/2))`` for ``x ≥ 0``."""

    support = "positive"
    parameter_names = ("k",)

    def __init__(self, k: Operand) -> None:
        self.k = as_parameter(k)

    @property
    def mean(self) -> Variable:
        return self.k

    @property
    def variance(self) -> Variable:
        return 2 * self.k

    @property
    def entropy(self) -> Variable:
        half = 0.5 * self.k
        return half + math.log(2) + F.lgamma(half) + (1 - half) * F.digamma(half)

    def log_prob(self, x: ArrayLike) -> Variable:
        half = 0.5 * self.k
        density = (half - 1) * F.log(x) - 0.5 * x
        return within(as_array(x) >= 0, density - F.lgamma(half) - math.log(2) * half)

    def sample_n(self, n: int) -> Variable:
        drawn = self._draw(self.xp.random.chisquare, n, self.k.dtype, self.k.array)
        return Variable(drawn)


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
