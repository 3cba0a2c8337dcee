"""Distributions of integers: Bernoulli, Geometric and Poisson."""

from __future__ import annotations

import math

import numpy

import renga.functions as F
from renga.core.distribution import (
    Univariate,
    as_parameter,
    register_kl,
    within,
    x_log_x,
)
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_array, as_variable


class Bernoulli(Univariate):
    """1 with probability ``p``, else 0; ``logit`` is ``log(p / (1 - p))``.

    With ``binary_check`` anything but 0 and 1 has probability 0. Without it, ``prob``
    of values between is linear, and ``log_prob``, which is not its logarithm, too,
    unless ``p`` is 0 or 1. ``log_prob`` has no gradient with respect to ``x``.

    Raises:
        ValueError: not exactly one of ``p`` and ``logit`` is given.
    """

    support = "{0, 1}"
    parameter_names = ("logit",)

    def __init__(
        self,
        p: Operand | None = None,
        logit: Operand | None = None,
        binary_check: bool = False,
    ) -> None:
        if (p is None) == (logit is None):
            raise ValueError("Bernoulli: expected one of `p` and `logit` (not both)")
        if p is not None:
            self.p = as_parameter(p)
            self.logit = F.log(self.p) - F.log1p(-self.p)
        elif logit is not None:
            self.logit = as_parameter(logit)
            self.p = F.sigmoid(self.logit)
        self.binary_check = binary_check
        self._has_given_p = p is not None

    @property
    def mean(self) -> Variable:
        return self.p

    @property
    def variance(self) -> Variable:
        return self.p * (1 - self.p)

    @property
    def entropy(self) -> Variable:
        if self._has_given_p:  # the gradient through its logarithm may be infinite
            return -x_log_x(self.p) - x_log_x(1 - self.p)
        return -_expected_log_prob(self.p, self.logit)

    def prob(self, x: ArrayLike) -> Variable:
        if self.binary_check:
            return super().prob(x)
        x = F.cast(as_variable(x), self.p.dtype)
        return x * self.p + (1 - x) * (1 - self.p)

    def log_prob(self, x: ArrayLike) -> Variable:
        values = as_array(x)
        constant = F.cast(as_variable(values), self.p.dtype)
        value = _expected_log_prob(constant, self.logit)
        if self.binary_check:
            value = within((values == 0) | (values == 1), value)
        return value

    def sample_n(self, n: int) -> Variable:
        drawn = self._draw(self.xp.random.binomial, n, int, 1, self.p.array)
        return Variable(drawn)


def _expected_log_prob(x: Variable, logit: Variable) -> Variable:
    """``x log p + (1 - x) log(1 - p)``, for p = 1 ``log x``, for 0 ``log(1 - x)``."""
    # With the outcomes exchanged where p is above 1/2, no logit is large and positive.
    shape = numpy.broadcast_shapes(x.shape, logit.shape)
    x, logit = F.broadcast_to(x, shape), F.broadcast_to(logit, shape)
    likely = logit.array > 0
    x, logit = F.where(likely, 1 - x, x), F.where(likely, -logit, logit)
    certain = logit.array == -math.inf
    if certain.any():
        logit = within(~certain, logit, 0)
    value = x * logit - F.softplus(logit)
    return F.where(certain, F.log(1 - x), value) if certain.any() else value


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli(dist1: Bernoulli, dist2: Bernoulli) -> Variable:
    gained = F.softplus(dist2.logit) - F.softplus(dist1.logit)
    return dist1.p * (dist1.logit - dist2.logit) + gained


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
        return Variable(drawn)


@register_kl(Geometric, Geometric)
def _kl_geometric(dist1: Geometric, dist2: Geometric) -> Variable:
    failures = (1 / dist1.p - 1) * (F.log1p(-dist1.p) - F.log1p(-dist2.p))
    return failures + F.log(dist1.p) - F.log(dist2.p)


class Poisson(Univariate):
    """``p(x) = lam^x exp(-lam) / x!`` for ``x = 0, 1, 2, …``.

    ``log_prob`` has no gradient with respect to ``x``.
    """

    support = "non negative integer"
    parameter_names = ("lam",)

    def __init__(self, lam: Operand) -> None:
        self.lam = as_parameter(lam)

    @property
    def mean(self) -> Variable:
        return self.lam

    variance = mean

    def log_prob(self, x: ArrayLike) -> Variable:
        x = F.cast(as_variable(as_array(x)), self.lam.dtype)
        return x * F.log(self.lam) - F.lgamma(x + 1) - self.lam

    def sample_n(self, n: int) -> Variable:
        drawn = self._draw(self.xp.random.poisson, n, self.lam.dtype, self.lam.array)
        return Variable(drawn)


@register_kl(Poisson, Poisson)
def _kl_poisson(dist1: Poisson, dist2: Poisson) -> Variable:
    return dist1.lam * F.log(dist1.lam / dist2.lam) - dist1.lam + dist2.lam
