"""Beta and Dirichlet: fractions of 1."""

from __future__ import annotations

import renga.functions as F
from renga.core.distribution import (
    Distribution,
    Univariate,
    as_parameter,
    register_kl,
    within,
)
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_array, as_variable


def _log_beta(a: Variable, b: Variable) -> Variable:
    return F.lgamma(a) + F.lgamma(b) - F.lgamma(a + b)


class Beta(Univariate):
    """``p(x) = x^(a - 1) (1 - x)^(b - 1) / B(a, b)`` from 0 to 1."""

    support = "[0, 1]"
    parameter_names = ("a", "b")

    def __init__(self, a: Operand, b: Operand) -> None:
        self.a = as_parameter(a)
        self.b = as_parameter(b)

    @property
    def mean(self) -> Variable:
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> Variable:
        total = self.a + self.b
        return self.a * self.b / (F.square(total) * (total + 1))

    @property
    def entropy(self) -> Variable:
        a, b = self.a, self.b
        logs = (a - 1) * F.digamma(a) + (b - 1) * F.digamma(b)
        return _log_beta(a, b) - logs + (a + b - 2) * F.digamma(a + b)

    def log_prob(self, x: ArrayLike) -> Variable:
        inside = (as_array(x) >= 0) & (as_array(x) <= 1)
        density = (self.a - 1) * F.log(x) + (self.b - 1) * F.log1p(-x)
        return within(inside, density - _log_beta(self.a, self.b))

    def sample_n(self, n: int) -> Variable:
        drawn = self._draw(
            self.xp.random.beta, n, self.a.dtype, self.a.array, self.b.array
        )
        return Variable(drawn)


@register_kl(Beta, Beta)
def _kl_beta(dist1: Beta, dist2: Beta) -> Variable:
    a, b = dist1.a - dist2.a, dist1.b - dist2.b
    log_normalizer = _log_beta(dist2.a, dist2.b) - _log_beta(dist1.a, dist1.b)
    shapes = a * F.digamma(dist1.a) + b * F.digamma(dist1.b)
    return log_normalizer + shapes - (a + b) * F.digamma(dist1.a + dist1.b)


def _log_multivariate_beta(alpha: Variable) -> Variable:
    return F.sum(F.lgamma(alpha), axis=-1) - F.lgamma(F.sum(alpha, axis=-1))


class Dirichlet(Distribution):
    """``p(x) = ∏ x_i^(alpha_i - 1) / B(alpha)`` over fractions ``x`` of sum 1.

    Shapes:
        alpha: ``batch_shape + (fractions,)``
        samples: ``sample_shape + batch_shape + (fractions,)``
    """

    support = "[0, 1]"

    def __init__(self, alpha: Operand) -> None:
        self.alpha = as_parameter(alpha)

    @property
    def alpha0(self) -> Variable:
        return F.sum(self.alpha, axis=-1)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.alpha.shape[:-1]

    @property
    def event_shape(self) -> tuple[int, ...]:
        return self.alpha.shape[-1:]

    @property
    def params(self) -> dict[str, Variable]:
        return {"alpha": self.alpha}

    @property
    def mean(self) -> Variable:
        return self.alpha / F.expand_dims(self.alpha0, -1)

    @property
    def variance(self) -> Variable:
        total = F.expand_dims(self.alpha0, -1)
        return self.alpha * (total - self.alpha) / (F.square(total) * (total + 1))

    @property
    def entropy(self) -> Variable:
        total = self.alpha0
        count = self.event_shape[0]
        fractions = F.sum((self.alpha - 1) * F.digamma(self.alpha), axis=-1)
        return (
            _log_multivariate_beta(self.alpha)
            + (total - count) * F.digamma(total)
            - fractions
        )

    def log_prob(self, x: ArrayLike) -> Variable:
        logs = (self.alpha - 1) * F.log(as_variable(x))
        return F.sum(logs, axis=-1) - _log_multivariate_beta(self.alpha)

    def sample_n(self, n: int) -> Variable:
        *batch, fractions = self.alpha.shape
        # Those of one distribution after the other, as ``dirichlet`` draws them.
        alpha = self.alpha.array[..., None, :]
        drawn = self.xp.random.gamma(alpha, 1.0, (*batch, n, fractions))
        drawn /= drawn.sum(axis=-1, keepdims=True)
        drawn = self.xp.moveaxis(drawn, -2, 0)
        return Variable(drawn.astype(self.alpha.dtype))


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet(dist1: Dirichlet, dist2: Dirichlet) -> Variable:
    logs = F.digamma(dist1.alpha) - F.expand_dims(F.digamma(dist1.alpha0), -1)
    fractions = F.sum((dist1.alpha - dist2.alpha) * logs, axis=-1)
    return (
        _log_multivariate_beta(dist2.alpha)
        - _log_multivariate_beta(dist1.alpha)
        + fractions
    )
