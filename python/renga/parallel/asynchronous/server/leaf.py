"""Workers that push as one, and their mean gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy

from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.optimizer import GradientMethod
from renga.core.optimizer.update_rule import UpdateRule
from renga.core.parameter import Parameter
from renga.parallel.asynchronous.packed import PackedParameters
from renga.parallel.asynchronous.server.gradient import Gradient
from renga.parallel.asynchronous.server.settings import numbers_of
from renga.parallel.data.gradients import take_gradient
from renga.parallel.data.sample_weighting import UNKNOWN_SAMPLES, GradientWeight


class Leaf:
    """A group of workers, the first of which exchanges messages with the servers.

    Args:
        comm: of the group.
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm

    @property
    def is_first(self) -> bool:
        """Whether this worker pushes."""
        return self._comm.rank == 0

    def share(self, packed: PackedParameters) -> None:
        """Gives all workers the parameters of the first."""
        if self._comm.size > 1:
            flats = packed.pack()
            for flat in flats:
                self._comm.broadcast(flat)
            packed.unpack(flats)

    def share_number(self, number: float) -> float:
        """The number of the first worker."""
        return number if self._comm.size == 1 else self._comm.bcast_obj(number)

    def share_states(self, rules: Sequence[UpdateRule | None]) -> None:
        """Gives all workers the states of the first one's update rules."""
        if self._comm.size > 1:
            states = [None if rule is None else rule.get_values() for rule in rules]
            states = self._comm.bcast_obj(states)
            for rule, values in zip(rules, states):
                if rule is not None:
                    rule.set_values(values)

    def average_gradients(self, model: Link, samples: int | None) -> int:
        """Replaces the gradients by the workers' mean over samples.

        Args:
            model: with the gradients.
            samples: of this worker's batch; None if that is not known.

        Returns:
            The samples of all workers, or UNKNOWN_SAMPLES.
        """
        own = UNKNOWN_SAMPLES if samples is None else samples
        if self._comm.size == 1:
            return own
        counts = self._comm.all_gather(numpy.array([own]))[:, 0]
        weight = GradientWeight(own, float(own)).factor(counts, self._comm.rank)
        for param in model.params(include_uninit=False):
            grad = param.grad
            if grad is not None and weight != 1:
                param.grad = grad * grad.dtype.type(weight)
        self._comm.multi_node_mean_grad(model, zero_fill=True)
        return int(counts.sum()) if counts.min() >= 0 else UNKNOWN_SAMPLES

    def wait(self) -> None:
        """Waits for all workers."""
        if self._comm.size > 1:
            self._comm.barrier()


def take_gradient_of(
    params: Sequence[Parameter],
    optimizer: GradientMethod,
    leaf: Leaf,
    samples: int | None,
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
        param.loss_scale = None
    values = numbers_of(optimizer)
    return Gradient(arrays, scale if is_safe else math.nan, samples, values)


def _common_scale(params: Sequence[Parameter]) -> float:
    """The loss scale of all gradients; those with another one are multiplied by it."""
    scales = {p.loss_scale for p in params if p.grad is not None}
    scale = (scales.pop() if len(scales) == 1 else None) or 1.0
    for param in params:
        factor = scale / (param.loss_scale or 1.0)
        if param.grad is not None and factor != 1:
            param.grad = param.grad * param.dtype.type(factor)
    return scale
