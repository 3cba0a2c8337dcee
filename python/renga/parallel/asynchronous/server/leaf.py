"""Workers that push as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from renga.parallel.asynchronous.server.shard_optimizer import set_state, state_of
from renga.parallel.data.sample_weighting import (
    UNKNOWN_SAMPLES,
    GradientWeight,
)

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.parallel.asynchronous.packed import PackedParameters


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

    def share_states(self, rules: Sequence[Any]) -> None:
        """Gives all workers the states of the first one's update rules."""
        if self._comm.size > 1:
            states = [None if rule is None else state_of(rule) for rule in rules]
            states = self._comm.bcast_obj(states)
            for rule, state in zip(rules, states):
                if rule is not None:
                    set_state(rule, *state)

    def average_gradients(self, model: Any, samples: int | None) -> int:
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
