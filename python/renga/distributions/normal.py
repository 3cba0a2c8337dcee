"""Normal distributions: of one variable, of its exponential, and of several."""

from __future__ import annotations

import math
from typing import Any

import renga.functions as F
from renga.core.distribution import (
    Distribution,
    Univariate,
    as_parameter,
    kl_divergence,
    register_kl,
    within,
)
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_array
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


class LogNormal(Univariate):
    """``exp(z)`` for ``z`` of ``Normal(mu, sigma)``."""

    support = "positive"
    parameter_names = ("mu", "sigma")

    def __init__(self, mu: Operand, sigma: Operand) -> None:
        self._normal = Normal(mu, sigma)
        self.mu = self._normal.loc
        self.sigma = self._normal.scale

    @property
    def mean(self) -> Variable:
        return F.exp(self.mu + 0.5 * F.square(self.sigma))

    @property
    def mode(self) -> Variable:
        return F.exp(self.mu - F.square(self.sigma))

    @property
    def variance(self) -> Variable:
        return F.square(self.mean) * F.expm1(F.square(self.sigma))

    @property
    def entropy(self) -> Variable:
        return self._normal.entropy + self.mu

    def log_prob(self, x: ArrayLike) -> Variable:
        positive = as_array(x) > 0
        z = F.log(within(positive, F.broadcast_to(x, positive.shape), 1))
        return within(positive, self._normal.log_prob(z) - z)

    def cdf(self, x: ArrayLike) -> Variable:
        return self._normal.cdf(F.log(F.relu(x)))

    def icdf(self, x: ArrayLike) -> Variable:
        return F.exp(self._normal.icdf(x))

    def sample_n(self, n: int) -> Variable:
        return F.exp(self._normal.sample_n(n))


@register_kl(LogNormal, LogNormal)
def _kl_log_normal(dist1: LogNormal, dist2: LogNormal) -> Variable:
    return kl_divergence(dist1._normal, dist2._normal)


class MultivariateNormal(Distribution):
    """Normal with mean ``loc`` and covariance ``L Lᵀ``, ``L`` being ``scale_tril``.

    Shapes:
        loc: ``batch_shape + (d,)``
        scale_tril: ``batch_shape + (d, d)``, lower triangular
        samples: ``sample_shape + batch_shape + (d,)``

    Raises:
        ValueError: ``scale_tril`` is not given.
    """

    support = "real"

    def __init__(self, loc: Operand, **kwargs: object) -> None:
        (scale_tril,) = argument.parse_kwargs(kwargs, ("scale_tril", None))
        if scale_tril is None:
            raise ValueError("MultivariateNormal: expected scale_tril, got None")
        self.loc = as_parameter(loc)
        self.scale_tril = as_parameter(scale_tril)

    @property
    def d(self) -> int:
        """How many variables there are."""
        return self.loc.shape[-1]

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.loc.shape[:-1]

    @property
    def event_shape(self) -> tuple[int, ...]:
        return self.loc.shape[-1:]

    @property
    def params(self) -> dict[str, Variable]:
        return {"loc": self.loc, "scale_tril": self.scale_tril}

    @property
    def mean(self) -> Variable:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Variable:
        return F.sum(F.square(self.scale_tril), axis=-1)

    @property
    def covariance(self) -> Variable:
        return F.matmul(self.scale_tril, self.scale_tril, transb=True)

    @property
    def entropy(self) -> Variable:
        return self._log_det() + 0.5 * self.d * math.log(2 * math.pi * math.e)

    def log_prob(self, x: ArrayLike) -> Variable:
        z = self._solve(F.expand_dims(x - self.loc, -1))
        distance = F.sum(F.square(z), axis=(-2, -1))
        log_normalizer = 0.5 * self.d * math.log(2 * math.pi)
        return -0.5 * distance - self._log_det() - log_normalizer

    def sample_n(self, n: int) -> Variable:
        noise = self._draw(self.xp.random.normal, n, self.loc.dtype, 0, 1)
        noise = noise[..., None]
        scale = F.broadcast_to(self.scale_tril, (n, *self.scale_tril.shape))
        return self.loc + F.squeeze(F.matmul(scale, noise), axis=-1)

    def _log_det(self) -> Variable:
        diagonal = F.diagonal(self.scale_tril, axis1=-2, axis2=-1)
        return F.sum(F.log(F.absolute(diagonal)), axis=-1)

    def _solve(self, b: Variable) -> Variable:
        """``L⁻¹ b`` for matrices ``b`` after any axes before the batch's."""
        d = self.d
        lead = b.shape[: b.ndim - 2]
        tril = F.broadcast_to(self.scale_tril, lead + (d, d))
        inverse = F.reshape(F.batch_inv(F.reshape(tril, (-1, d, d))), tril.shape)
        return F.matmul(inverse, b)


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariate_normal(
    dist1: MultivariateNormal, dist2: MultivariateNormal
) -> Variable:
    ratio = F.sum(F.square(dist2._solve(dist1.scale_tril)), axis=(-2, -1))
    shift = dist2._solve(F.expand_dims(dist2.loc - dist1.loc, -1))
    distance = F.sum(F.square(shift), axis=(-2, -1))
    volumes = dist2._log_det() - dist1._log_det()
    return volumes + 0.5 * (ratio + distance - dist1.d)
