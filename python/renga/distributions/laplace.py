"""Laplace: an exponential to either side."""

from __future__ import annotations

import math

import renga.functions as F
from renga.core.distribution import Univariate, as_parameter, register_kl
from renga.core.types import Array, ArrayLike, Operand
from renga.core.variable import Variable, as_variable


class Laplace(Univariate):
    """``p(x) = exp(-|x - loc| / scale) / (2 scale)``."""

    support = "real"
    parameter_names = ("loc", "scale")

    def __init__(self, loc: Operand, scale: Operand) -> None:
        self.loc = as_parameter(loc)
        self.scale = as_parameter(scale)

    @property
    def mean(self) -> Variable:
        return self._broadcast(self.loc)

    mode = mean

    @property
    def variance(self) -> Variable:
        return F.square(self.stddev)

    @property
    def stddev(self) -> Variable:
        return math.sqrt(2) * self._broadcast(self.scale)

    @property
    def entropy(self) -> Variable:
        return 1 + F.log(2 * self._broadcast(self.scale))

    def log_prob(self, x: ArrayLike) -> Variable:
        return -F.absolute(x - self.loc) / self.scale - F.log(2 * self.scale)

    def cdf(self, x: ArrayLike) -> Variable:
        z = (as_variable(x) - self.loc) / self.scale
        tail = 0.5 * F.exp(-_signs(z) * z)
        return F.where(z.array < 0, tail, 1 - tail)

    def icdf(self, x: ArrayLike) -> Variable:
        h = 2 * as_variable(x) - 1
        signs = _signs(h)
        return self.loc - self.scale * signs * F.log1p(-signs * h)

    def sample_n(self, n: int) -> Variable:
        noise = self._draw(self.xp.random.laplace, n, self.loc.dtype, 0, 1)
        return self.loc + self.scale * noise


def _signs(x: Variable) -> Array:
    """-1 or 1, which is that of 0: there the derivatives of both sides are equal."""
    return x.xp.where(x.array < 0, -1, 1).astype(x.dtype)


@register_kl(Laplace, Laplace)
def _kl_laplace(dist1: Laplace, dist2: Laplace) -> Variable:
    distance = F.absolute(dist1.loc - dist2.loc)
    near = dist1.scale * F.exp(-distance / dist1.scale)
    return F.log(dist2.scale / dist1.scale) + (distance + near) / dist2.scale - 1
