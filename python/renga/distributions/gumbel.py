"""Gumbel: the largest of many."""

from __future__ import annotations

import math

import numpy

import renga.functions as F
from renga.core.distribution import Univariate, as_parameter, register_kl
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_variable


class Gumbel(Univariate):
    """``p(x) = exp(-z - exp(-z)) / scale`` with ``z = (x - loc) / scale``."""

    support = "real"
    parameter_names = ("loc", "scale")

    def __init__(self, loc: Operand, scale: Operand) -> None:
        self.loc = as_parameter(loc)
        self.scale = as_parameter(scale)

    @property
    def mean(self) -> Variable:
        return self.loc + numpy.euler_gamma * self.scale

    @property
    def mode(self) -> Variable:
        return self._broadcast(self.loc)

    @property
    def variance(self) -> Variable:
        scale = self._broadcast(self.scale)
        return math.pi**2 / 6 * F.square(scale)

    @property
    def entropy(self) -> Variable:
        scale = self._broadcast(self.scale)
        return F.log(scale) + (1 + numpy.euler_gamma)

    def log_prob(self, x: ArrayLike) -> Variable:
        z = (as_variable(x) - self.loc) / self.scale
        return -z - F.exp(-z) - F.log(self.scale)

    def cdf(self, x: ArrayLike) -> Variable:
        return F.exp(-F.exp((self.loc - x) / self.scale))

    def icdf(self, x: ArrayLike) -> Variable:
        return self.loc - self.scale * F.log(-F.log(as_variable(x)))

    def sample_n(self, n: int) -> Variable:
        noise = self._draw(self.xp.random.gumbel, n, self.loc.dtype, 0, 1)
        return self.loc + self.scale * noise


@register_kl(Gumbel, Gumbel)
def _kl_gumbel(dist1: Gumbel, dist2: Gumbel) -> Variable:
    ratio = dist1.scale / dist2.scale
    shift = (dist1.loc - dist2.loc) / dist2.scale
    moved = F.exp(-shift + F.lgamma(1 + ratio))
    return -F.log(ratio) + numpy.euler_gamma * (ratio - 1) + shift + moved - 1
