"""Chisquare: the sum of squares of normal variables."""

from __future__ import annotations

import math

import renga.functions as F
from renga.core.distribution import Univariate, as_parameter, within
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_array


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
        return Variable(drawn, requires_grad=False)
