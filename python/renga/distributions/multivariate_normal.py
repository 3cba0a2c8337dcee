"""MultivariateNormal: normal variables that depend on each other."""

from __future__ import annotations

import math

import renga.functions as F
from renga.core.distribution import Distribution, as_parameter, register_kl
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable
from renga.utils import argument


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
