"""Dirichlet: fractions that sum to 1."""

from __future__ import annotations

import renga.functions as F
from renga.core.distribution import Distribution, as_parameter, register_kl
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_variable


def _log_beta(alpha: Variable) -> Variable:
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
        return _log_beta(self.alpha) + (total - count) * F.digamma(total) - fractions

    def log_prob(self, x: ArrayLike) -> Variable:
        logs = (self.alpha - 1) * F.log(as_variable(x))
        return F.sum(logs, axis=-1) - _log_beta(self.alpha)

    def sample_n(self, n: int) -> Variable:
        drawn = self._draw(
            self.xp.random.gamma, n, self.alpha.dtype, self.alpha.array, 1.0
        )
        drawn /= drawn.sum(axis=-1, keepdims=True)
        return Variable(drawn, requires_grad=False)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet(dist1: Dirichlet, dist2: Dirichlet) -> Variable:
    logs = F.digamma(dist1.alpha) - F.expand_dims(F.digamma(dist1.alpha0), -1)
    fractions = F.sum((dist1.alpha - dist2.alpha) * logs, axis=-1)
    return _log_beta(dist2.alpha) - _log_beta(dist1.alpha) + fractions
