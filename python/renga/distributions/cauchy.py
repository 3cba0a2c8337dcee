"""Cauchy: a peak with tails so heavy that there is no mean."""

from __future__ import annotations

import functools
import math
import warnings

import renga.functions as F
from renga.core.distribution import Univariate, as_parameter
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_variable


class Cauchy(Univariate):
    """``p(x) = 1 / (π scale (1 + ((x - loc) / scale)²))``.

    Mean and variance are NaN, of which a RuntimeWarning tells once.
    """

    support = "real"
    parameter_names = ("loc", "scale")

    def __init__(self, loc: Operand, scale: Operand) -> None:
        self.loc = as_parameter(loc)
        self.scale = as_parameter(scale)

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
    def mode(self) -> Variable:
        return self._broadcast(self.loc)

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
