"""Independent: batch axes reinterpreted as event axes."""

from __future__ import annotations

import renga.functions as F
from renga.core.distribution import Distribution, kl_divergence, register_kl
from renga.core.types import ArrayLike
from renga.core.variable import Variable


class Independent(Distribution):
    """Reinterprets the last axes of a batch as axes of the event.

    The elements are independent, so that probabilities multiply over these axes.
    ``reinterpreted_batch_ndims`` is their number, by default all but the first.

    Raises:
        ValueError: there are fewer axes in the batch.
    """

    def __init__(
        self, distribution: Distribution, reinterpreted_batch_ndims: int | None = None
    ) -> None:
        available = len(distribution.batch_shape)
        if reinterpreted_batch_ndims is None:
            reinterpreted_batch_ndims = max(available - 1, 0)
        if reinterpreted_batch_ndims > available:
            raise ValueError(
                "Independent: expected reinterpreted_batch_ndims of at most "
                f"{available}, the axes of the batch {distribution.batch_shape}, got "
                f"{reinterpreted_batch_ndims}"
            )
        self.distribution = distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def _split(self) -> int:
        return len(self.distribution.batch_shape) - self.reinterpreted_batch_ndims

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.distribution.batch_shape[: self._split]

    @property
    def event_shape(self) -> tuple[int, ...]:
        inner = self.distribution
        return inner.batch_shape[self._split :] + inner.event_shape

    @property
    def params(self) -> dict[str, Variable]:
        return self.distribution.params

    @property
    def support(self) -> str:
        return self.distribution.support

    @property
    def mean(self) -> Variable:
        return self.distribution.mean

    @property
    def mode(self) -> Variable:
        return self.distribution.mode

    @property
    def variance(self) -> Variable:
        return self.distribution.variance

    @property
    def stddev(self) -> Variable:
        return self.distribution.stddev

    @property
    def covariance(self) -> Variable:
        """Block-diagonal over the elements of the event, which is flattened.

        Shapes:
            return: ``batch_shape + (size, size)`` for ``size`` elements in an event
        """
        count = 1
        for extent in self.event_shape:
            count *= extent
        if self.distribution.event_shape:
            return self._blocks(self.distribution.covariance, count)
        variance = F.reshape(self.variance, self.batch_shape + (count, 1))
        return variance * self.xp.eye(count, dtype=variance.dtype)

    def _blocks(self, covariance: Variable, count: int) -> Variable:
        size = covariance.shape[-1]
        blocks = count // size
        same = self.xp.eye(blocks, dtype=covariance.dtype)[:, None, :, None]
        shape = self.batch_shape + (blocks, size, 1, size)
        spread = F.reshape(covariance, shape) * same
        return F.reshape(spread, self.batch_shape + (count, count))

    @property
    def entropy(self) -> Variable:
        return self._sum(self.distribution.entropy)

    def log_prob(self, x: ArrayLike) -> Variable:
        return self._sum(self.distribution.log_prob(x))

    def cdf(self, x: ArrayLike) -> Variable:
        return F.exp(self.log_cdf(x))

    def log_cdf(self, x: ArrayLike) -> Variable:
        return self._sum(self.distribution.log_cdf(x))

    def survival_function(self, x: ArrayLike) -> Variable:
        return F.exp(self.log_survival_function(x))

    def log_survival_function(self, x: ArrayLike) -> Variable:
        """That of the probability that all elements are greater, as in Chainer."""
        return self._sum(self.distribution.log_survival_function(x))

    def icdf(self, x: ArrayLike) -> Variable:
        raise RuntimeError(
            "Independent: the cumulative probability of several variables cannot be "
            "inverted"
        )

    def sample_n(self, n: int) -> Variable:
        return self.distribution.sample_n(n)

    def _sum(self, value: Variable) -> Variable:
        if self.reinterpreted_batch_ndims == 0:
            return value
        return F.sum(value, axis=tuple(range(-self.reinterpreted_batch_ndims, 0)))


@register_kl(Independent, Independent)
def _kl_independent(dist1: Independent, dist2: Independent) -> Variable:
    if dist1.reinterpreted_batch_ndims != dist2.reinterpreted_batch_ndims:
        raise ValueError(
            "kl_divergence: expected Independents with one number of reinterpreted "
            f"axes, got {dist1.reinterpreted_batch_ndims} and "
            f"{dist2.reinterpreted_batch_ndims}"
        )
    return dist1._sum(kl_divergence(dist1.distribution, dist2.distribution))
