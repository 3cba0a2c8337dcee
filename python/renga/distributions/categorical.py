"""Categorical: one of several classes, as a number or as a vector with a single 1."""

from __future__ import annotations

import renga.functions as F
from renga.core import backend
from renga.core.distribution import (
    Distribution,
    as_parameter,
    kl_divergence,
    register_kl,
    within,
    x_log_x,
)
from renga.core.types import Array, ArrayLike, Operand
from renga.core.variable import Variable, as_array, as_variable
from renga.functions.check import checked_indices
from renga.utils import argument


class Categorical(Distribution):
    """Class ``i`` with probability ``p[..., i]``, or ``softmax(logit)[..., i]``.

    Shapes:
        p, logit: ``batch_shape + (classes,)``
        samples: ``sample_shape + batch_shape``, of integers

    Raises:
        ValueError: not exactly one of ``p`` and ``logit`` is given.
    """

    event_shape = ()

    def __init__(self, p: Operand | None = None, **kwargs: object) -> None:
        (logit,) = argument.parse_kwargs(kwargs, ("logit", None))
        if (p is None) == (logit is None):
            raise ValueError("Categorical: expected one of `p` and `logit` (not both)")
        if p is not None:
            self.p = as_parameter(p)
            self.log_p = F.log(self.p)
        else:
            self.log_p = F.log_softmax(as_parameter(logit), axis=-1)
            self.p = F.exp(self.log_p)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.p.shape[:-1]

    @property
    def params(self) -> dict[str, Variable]:
        return {"p": self.p}

    @property
    def entropy(self) -> Variable:
        return -F.sum(x_log_x(self.p), axis=-1)

    def log_prob(self, x: ArrayLike) -> Variable:
        x = as_array(x)
        classes = self.p.shape[-1]
        xp = backend.get_array_module(x)
        shape = x.shape + (classes,)
        x = checked_indices("Categorical", "x", x.astype(int), classes)
        chosen = x[..., None] == xp.arange(classes)
        logs = F.broadcast_to(self.log_p, shape)
        return F.sum(within(chosen, logs, 0), axis=-1)

    def sample_n(self, n: int) -> Variable:
        return Variable(draw_classes(self.p, n))


def finite(log_p: Variable) -> Variable:
    """The logarithms, 0 for those of probability 0, which have no weight."""
    present = log_p.array > -float("inf")
    return log_p if present.all() else within(present, log_p, 0)


def draw_classes(p: Variable, n: int) -> Array:
    """``n`` classes for each distribution, along a new first axis.

    They are those of ``choice``, called for one distribution after the other.
    """
    xp = backend.get_array_module(p)
    bounds = xp.cumsum(p.array.astype("d"), axis=-1)
    bounds /= bounds[..., -1:]  # the last may differ from 1 by rounding
    noise = xp.moveaxis(xp.random.uniform(size=(*p.shape[:-1], n)), -1, 0)
    return (noise[..., None] >= bounds).sum(axis=-1)


@register_kl(Categorical, Categorical)
def _kl_categorical(dist1: Categorical, dist2: Categorical) -> Variable:
    present = dist1.p.array > 0
    gained = within(present, dist1.log_p, 0) - within(present, dist2.log_p, 0)
    return F.sum(dist1.p * gained, axis=-1)


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
        return Variable(one_hot[draw_classes(self.p, n)])


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_one_hot(dist1: OneHotCategorical, dist2: OneHotCategorical) -> Variable:
    return kl_divergence(Categorical(dist1.p), Categorical(dist2.p))
