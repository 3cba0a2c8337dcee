"""Replicated variables that a model combines with its shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from renga import _core
from renga.communicators import Communicator
from renga.core.around_call import HandledCall
from renga.core.parameter import Parameter
from renga.core.variable import Variable
from renga.functions import get_item
from renga.parallel.placement import (
    REPLICATE,
    REPLICATE_SUMMED,
    Placement,
)
from renga.parallel.placement.tracker import PlacementTracker
from renga.parallel.redistribute import with_summed_gradient


class SummedReads:
    """Sums the gradients of replicated variables that are combined with shards.

    Each rank finds the gradient through its own shard only. What has been broadcast to
    the shape of a shard, as by ``F.scale``, is the shard of that of the whole.

    It is the handler around the calls of a thread (:mod:`renga.core.around_call`).
    """

    def __init__(
        self,
        comm: Communicator,
        tracker: PlacementTracker,
        overrides: Mapping[str, Callable[..., object]],
    ) -> None:
        self._comm, self.tracker = comm, tracker
        self.overrides = overrides  # of functions that need more than a shard

    def __call__(self, call: HandledCall) -> None:
        """Runs a call with what stands for its operands beside shards."""
        placements: list[Placement] = [REPLICATE]
        if not self.tracker.is_paused:
            placements = [self.tracker.placement_of(x) for x in call.operands]
        if any(placement != REPLICATE for placement in placements):
            call.operands = [
                self._beside_shards(call.label, x) if placement == REPLICATE else x
                for x, placement in zip(call.operands, placements)
            ]
        call.run()

    def _beside_shards(self, label: str, x: Variable) -> Variable:
        """What stands for a replicated variable beside shards."""
        tracker = self.tracker
        is_summed = _core.backprop_enabled() and _is_trained(x)
        if tracker.is_uniform(x):
            if is_summed and 0 in x.shape:
                raise ValueError(
                    f"{label}: expected shards that are not empty beside a value with "
                    "a gradient that has been broadcast to their shape, got "
                    f"{x.shape}: use fewer ranks, or let {label} broadcast the value"
                )
            # One pixel or token stands for all: it has one shape on all ranks.
            axes = tracker.sharded_axes(x.ndim)
            first = tuple(slice(0, 1 if i in axes else None) for i in range(x.ndim))
            with tracker.paused():
                y = get_item(x, first)
                y = with_summed_gradient(self._comm, y) if is_summed else y
                y = _core.ops.broadcast_to(y, x.shape)
            tracker.record(y, tracker.sharded)
            return y
        if not is_summed:
            return x
        with tracker.paused():
            y = with_summed_gradient(self._comm, x)
        tracker.record(y, REPLICATE_SUMMED)
        return y


def _is_trained(x: Variable) -> bool:
    """Whether a gradient of ``x`` reaches a parameter."""
    return x.requires_grad and (isinstance(x, Parameter) or x.creator_node is not None)
