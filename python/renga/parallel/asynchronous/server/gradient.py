"""What a worker computes of a batch, and the mean of several workers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from renga import _communicators
from renga.parallel.asynchronous.server.settings import numbers_of
from renga.parallel.data.gradients import take_gradient
from renga.parallel.data.sample_weighting import GradientWeight

if TYPE_CHECKING:
    from renga.communicators.arrays import Array
    from renga.core.parameter import Parameter
    from renga.parallel.asynchronous.server.leaf import Leaf


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


def take_gradient_of(
    params: Sequence[Parameter], optimizer: Any, leaf: Leaf, samples: int | None
) -> Gradient:
    """The mean gradient of a leaf's workers; the parameters have none afterwards.

    Args:
        params: in the order of the gradient.
        optimizer: of this worker.
        leaf: averages.
        samples: in this worker's batch; None if that is not known.
    """
    scale = _common_scale(params)
    samples = leaf.average_gradients(optimizer.target, samples)
    optimizer.check_nan_in_grads()
    is_safe = optimizer.is_safe_to_update()
    arrays = []
    for param in params:
        arrays.append(take_gradient(param))
        param._loss_scale = None
    values = numbers_of(optimizer)
    return Gradient(arrays, scale if is_safe else math.nan, samples, values)


def _common_scale(params: Sequence[Parameter]) -> float:
    """The loss scale of all gradients; those with another one are multiplied by it."""
    scales = {p._loss_scale for p in params if p.grad is not None}
    scale = (scales.pop() if len(scales) == 1 else None) or 1.0
    for param in params:
        factor = scale / (param._loss_scale or 1.0)
        if param.grad is not None and factor != 1:
            param.grad = param.grad * param.dtype.type(factor)
    return scale


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
