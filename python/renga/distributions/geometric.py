"""Geometric: the number of attempts until the first success."""

from __future__ import annotations

import renga.functions as F
from renga.core.distribution import Univariate, as_parameter, register_kl
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_variable


class Geometric(Univariate):
    """``p(x) = p (1 - p)^(x - 1)`` for ``x = 1, 2, …``."""

    support = "positive integer"
    parameter_names = ("p",)

    def __init__(self, p: Operand) -> None:
        self.p = as_parameter(p)

    @property
    def mean(self) -> Variable:
        return 1 / self.p

    @property
    def variance(self) -> Variable:
        return (1 - self.p) / F.square(self.p)

    @property
    def entropy(self) -> Variable:
        q = 1 - self.p
        return -q / self.p * F.log1p(-self.p) - F.log(self.p)

    def log_prob(self, x: ArrayLike) -> Variable:
        x = F.cast(as_variable(x), self.p.dtype)
        return (x - 1) * F.log1p(-self.p) + F.log(self.p)

    def sample_n(self, n: int) -> Variable:
        drawn = self._draw(self.xp.random.geometric, n, self.p.dtype, self.p.array)
        return Variable(drawn, requires_grad=False)


@register_kl(Geometric, Geometric)
def _kl_geometric(dist1: Geometric, dist2: Geometric) -> Variable:
    failures = (1 / dist1.p - 1) * (F.log1p(-dist1.p) - F.log1p(-dist2.p))
    return failures + F.log(dist1.p) - F.log(dist2.p)
