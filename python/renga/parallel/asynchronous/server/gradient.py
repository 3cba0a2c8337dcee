"""What a worker computes of a batch, and the mean of several workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy

from renga import _communicators
from renga.core.types import Array
from renga.parallel.data.sample_weighting import GradientWeight


class Gradient(NamedTuple):
    """What a worker computes of a batch.

    Attributes:
        arrays: the gradients of parameters, or of the pieces of a shard.
        scale: the loss scale by which they are multiplied; NaN if one has overflowed.
        samples: in the batch, or UNKNOWN_SAMPLES.
        values: the numbers among the hyperparameters, by name.
    """

    arrays: list[Array]
    scale: float
    samples: int
    values: Mapping[str, float]

    @property
    def is_usable(self) -> bool:
        """Whether there were samples, and no overflow."""
        return self.samples != 0 and self.scale == self.scale


def mean_of(gradients: Sequence[Gradient]) -> Gradient:
    """The mean over all samples, with the scale and the values of the first."""
    samples = numpy.array([gradient.samples for gradient in gradients])
    scale = gradients[0].scale
    operands = []
    for i, gradient in enumerate(gradients):
        unit = float(gradient.samples)
        weight = GradientWeight(gradient.samples, unit).factor(samples, i)
        weight *= scale / gradient.scale
        operands.append([_weighted(x, weight) for x in gradient.arrays])
    means = [x.copy() for x in operands[0]]
    for i, mean in enumerate(means):
        _communicators.reduce([[xs[i]] for xs in operands], [mean], "mean", "")
    return gradients[0]._replace(arrays=means)


def _weighted(x: Array, weight: float) -> Array:
    """The product; zeros where nothing counts, even if it is not finite."""
    if weight == 0:
        return numpy.zeros_like(x)
    return x if weight == 1 else x * x.dtype.type(weight)
