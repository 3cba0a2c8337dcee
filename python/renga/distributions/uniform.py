"""Uniform and Pareto: values between two bounds, and above one."""

from __future__ import annotations

import math

import renga.functions as F
from renga.core.distribution import Univariate, as_parameter, register_kl, within
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_array, as_variable
from renga.utils import argument


class Uniform(Univariate):
    """``p(x) = 1 / (high - low)`` from ``low`` to ``high``.

    Given are ``low`` and ``high``, or ``loc`` (the lower bound) and ``scale``.

    Raises:
        ValueError: neither pair, or both, are given.
    """

    support = "[low, high]"

    def __init__(self, **kwargs: object) -> None:
        low, high, loc, scale = argument.parse_kwargs(
            kwargs, ("low", None), ("high", None), ("loc", None), ("scale", None)
        )
        by_bounds = low is not None and high is not None
        if by_bounds == (loc is not None and scale is not None):
            raise ValueError(
                "Uniform: expected `low` and `high`, or `loc` and `scale` (not both)"
            )
        if by_bounds:
            self.low, self.high = as_parameter(low), as_parameter(high)
            self.loc, self.scale = self.low, self.high - self.low
            self._params = {"low": self.low, "high": self.high}
        else:
            self.loc, self.scale = as_parameter(loc), as_parameter(scale)
            self.low, self.high = self.loc, self.loc + self.scale
            self._params = {"loc": self.loc, "scale": self.scale}

    @property
    def params(self) -> dict[str, Variable]:
        return dict(self._params)

    @property
    def mean(self) -> Variable:
        return 0.5 * (self.low + self.high)

    @property
    def variance(self) -> Variable:
        return F.square(self.stddev)

    @property
    def stddev(self) -> Variable:
        return self._broadcast(self.scale) / math.sqrt(12)

    @property
    def entropy(self) -> Variable:
        return F.log(self._broadcast(self.scale))

    def log_prob(self, x: ArrayLike) -> Variable:
        x = as_array(x)
        inside = (x >= self.low.array) & (x <= self.high.array)
        return within(inside, F.broadcast_to(-F.log(self.scale), inside.shape))

    def cdf(self, x: ArrayLike) -> Variable:
        return F.clip((x - self.loc) / self.scale, 0.0, 1.0)

    def icdf(self, x: ArrayLike) -> Variable:
        return self.loc + self.scale * as_variable(x)

    def sample_n(self, n: int) -> Variable:
        noise = self._draw(self.xp.random.uniform, n, self.low.dtype, 0, 1)
        return self.icdf(noise)


@register_kl(Uniform, Uniform)
def _kl_uniform(dist1: Uniform, dist2: Uniform) -> Variable:
    covered = (dist2.low.array <= dist1.low.array) & (
        dist1.high.array <= dist2.high.array
    )
    return within(covered, F.log(dist2.scale / dist1.scale), math.inf)


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
