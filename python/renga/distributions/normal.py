"""Normal distribution."""

from __future__ import annotations

import math
from typing import Any

import renga.functions as F
from renga.core.distribution import Univariate, as_parameter, register_kl
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable
from renga.utils import argument

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


class Normal(Univariate):
    """``p(x) = exp(-(x - loc)² / (2 scale²)) / (scale √(2π))``.

    ``log_scale`` may be given instead of ``scale``.

    Raises:
        ValueError: not exactly one of ``scale`` and ``log_scale`` is given.
    """

    support = "real"
    parameter_names = ("loc", "scale")

    def __init__(
        self, loc: Operand, scale: Operand | None = None, **kwargs: object
    ) -> None:
        (log_scale,) = argument.parse_kwargs(kwargs, ("log_scale", None))
        if (scale is None) == (log_scale is None):
            raise ValueError(
                "Normal: expected one of `scale` and `log_scale` (not both)"
            )
        self.loc = as_parameter(loc)
        if scale is not None:
            self.scale = as_parameter(scale)
            self.log_scale = F.log(self.scale)
        else:
            self.log_scale = as_parameter(log_scale)
            self.scale = F.exp(self.log_scale)

    @property
    def mean(self) -> Variable:
        return self._broadcast(self.loc)

    mode = mean

    @property
    def variance(self) -> Variable:
        return F.square(self.stddev)

    @property
    def stddev(self) -> Variable:
        return self._broadcast(self.scale)

    @property
    def entropy(self) -> Variable:
        log_scale = self._broadcast(self.log_scale)
        return log_scale + (0.5 + _HALF_LOG_TAU)

    def _standard(self, x: Any) -> Variable:
        return (x - self.loc) / self.scale

    def log_prob(self, x: ArrayLike) -> Variable:
        return -0.5 * F.square(self._standard(x)) - self.log_scale - _HALF_LOG_TAU

    def cdf(self, x: ArrayLike) -> Variable:
        return F.ndtr(self._standard(x))

    def icdf(self, x: ArrayLike) -> Variable:
        return self.loc + self.scale * F.ndtri(x)

    def log_cdf(self, x: ArrayLike) -> Variable:
        return F.log_ndtr(self._standard(x))

    def survival_function(self, x: ArrayLike) -> Variable:
        return F.ndtr(-self._standard(x))

    def log_survival_function(self, x: ArrayLike) -> Variable:
        return F.log_ndtr(-self._standard(x))

    def sample_n(self, n: int) -> Variable:
        noise = self._draw(self.xp.random.normal, n, self.loc.dtype, 0, 1)
        return self.loc + self.scale * noise


@register_kl(Normal, Normal)
def _kl_normal(dist1: Normal, dist2: Normal) -> Variable:
    ratio = F.square(dist1.scale / dist2.scale)
    distance = F.square((dist1.loc - dist2.loc) / dist2.scale)
    return dist2.log_scale - dist1.log_scale + 0.5 * (ratio + distance - 1)
