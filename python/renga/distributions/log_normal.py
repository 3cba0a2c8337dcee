"""LogNormal: the exponential of a normal variable."""

from __future__ import annotations

import renga.functions as F
from renga.core.distribution import Univariate, kl_divergence, register_kl, within
from renga.core.types import ArrayLike, Operand
from renga.core.variable import Variable, as_array
from renga.distributions.normal import Normal


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
