"""OneHotCategorical: one of several classes, as a vector with a single 1."""

from __future__ import annotations

import renga.functions as F
from renga.core.distribution import (
    Distribution,
    as_parameter,
    kl_divergence,
    register_kl,
)
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_variable
from renga.distributions.categorical import Categorical, draw_classes, finite


class OneHotCategorical(Distribution):
    """The vector with a 1 at class ``i`` with probability ``p[..., i]``.

    Shapes:
        p: ``batch_shape + (classes,)``
        samples: ``sample_shape + batch_shape + (classes,)``
    """

    def __init__(self, p: Operand) -> None:
        self.p = as_parameter(p)
        self.log_p = F.log(self.p)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.p.shape[:-1]

    @property
    def event_shape(self) -> tuple[int, ...]:
        return self.p.shape[-1:]

    @property
    def params(self) -> dict[str, Variable]:
        return {"p": self.p}

    @property
    def mean(self) -> Variable:
        return self.p

    @property
    def variance(self) -> Variable:
        return self.p * (1 - self.p)

    @property
    def entropy(self) -> Variable:
        return Categorical(self.p).entropy

    def log_prob(self, x: ArrayLike) -> Variable:
        x = F.cast(as_variable(x), self.p.dtype)
        return F.sum(finite(self.log_p) * x, axis=-1)

    def sample_n(self, n: int) -> Variable:
        one_hot = self.xp.eye(self.p.shape[-1], dtype=self.p.dtype)
        return Variable(one_hot[draw_classes(self.p, n)], requires_grad=False)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_one_hot(dist1: OneHotCategorical, dist2: OneHotCategorical) -> Variable:
    return kl_divergence(Categorical(dist1.p), Categorical(dist2.p))
