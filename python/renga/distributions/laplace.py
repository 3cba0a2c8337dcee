"""Laplace, Gumbel and Cauchy: peaks of other shapes than the normal one."""

from __future__ import annotations

import functools
import math
import warnings

import numpy

import renga.functions as F
from renga.core.distribution import Univariate, as_parameter, register_kl
from renga.core.types import Array, ArrayLike, Operand
from renga.core.variable import Variable, as_variable


class _Peak(Univariate):
    """A density that is largest at ``loc``, and as wide as ``scale``."""

    support = "real"
    parameter_names = ("loc", "scale")

    def __init__(self, loc: Operand, scale: Operand) -> None:
        self.loc = as_parameter(loc)
        self.scale = as_parameter(scale)

    @property
    def mode(self) -> Variable:
        return self._broadcast(self.loc)


class Laplace(_Peak):
    """``p(x) = exp(-|x - loc| / scale) / (2 scale)``."""

    @property
    def mean(self) -> Variable:
        return self.mode

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


class Gumbel(_Peak):
    """``p(x) = exp(-z - exp(-z)) / scale`` with ``z = (x - loc) / scale``."""

    @property
    def mean(self) -> Variable:
        return self.loc + numpy.euler_gamma * self.scale

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


class Cauchy(_Peak):
    """``p(x) = 1 / (π scale (1 + ((x - loc) / scale)²))``.

    Mean and variance are NaN, of which a RuntimeWarning tells once.
    """

    @functools.cached_property
    def mean(self) -> Variable:  # type: ignore[override]
        return self._undefined("Mean")

    @functools.cached_property
    def variance(self) -> Variable:  # type: ignore[override]
        return self._undefined("Variance")

    def _undefined(self, moment: str) -> Variable:
        warnings.warn(
            f"{moment} of the cauchy distribution is undefined.",
            RuntimeWarning,
            stacklevel=4,
        )
        return as_variable(self.xp.full(self.batch_shape, math.nan, self.loc.dtype))

    @property
    def entropy(self) -> Variable:
        return F.log(4 * math.pi * self._broadcast(self.scale))

    def log_prob(self, x: ArrayLike) -> Variable:
        z = (x - self.loc) / self.scale
        return -F.log1p(F.square(z)) - F.log(math.pi * self.scale)

    def cdf(self, x: ArrayLike) -> Variable:
        return F.arctan((x - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, x: ArrayLike) -> Variable:
        return self.loc + self.scale * F.tan(math.pi * (as_variable(x) - 0.5))

    def sample_n(self, n: int) -> Variable:
        noise = self._draw(self.xp.random.standard_cauchy, n, self.loc.dtype)
        return self.loc + self.scale * noise
