"""Checks that functions of a model compute what they would without shards."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from renga import _core
from renga.communicators import Communicator
from renga.core.around_call import HandledCall
from renga.core.operations import operation_of
from renga.core.variable import Variable
from renga.functions import get_item
from renga.parallel.conversion.arguments import arrays_in
from renga.parallel.placement import REPLICATE, REPLICATE_SUMMED, Placement
from renga.parallel.placement.activation_shard import ReadingSite
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
            placements = [self.tracker.placement_of_operand(x) for x in call.operands]
        if any(placement != REPLICATE for placement in placements):
            call.operands = [
                self._beside_shards(call.label, x) if placement == REPLICATE else x
                for x, placement in zip(call.operands, placements)
            ]
        call.run()

    def _beside_shards(self, label: str, x: Variable) -> Variable:
        """What stands for a replicated variable beside shards."""
        tracker = self.tracker
        is_summed = _core.backprop_enabled() and has_gradient(x)
        axes = tracker.uniform_axes(x)
        # A rank may have a shard of one row: it takes part in the same sum.
        is_shard = any(x.shape[i] != 1 for i in tracker.sharded_axes(x.ndim))
        if axes and (is_shard or is_summed):
            if is_summed and 0 in x.shape:
                raise ValueError(
                    f"{label}: expected shards that are not empty beside a value with "
                    "a gradient that has been broadcast to their shape, got "
                    f"{x.shape}: use fewer ranks, or let {label} broadcast the value"
                )
            # One element stands for all that are the same. It has one shape on all
            # ranks, and its gradient is added up in one order.
            first = tuple(slice(0, 1 if i in axes else None) for i in range(-x.ndim, 0))
            with tracker.paused():
                y = get_item(x, first)
                y = with_summed_gradient(self._comm, y) if is_summed else y
                y = _core.ops.broadcast_to(y, x.shape)
            tracker.record(y, tracker.sharded if is_shard else REPLICATE_SUMMED)
            return y
        if not is_summed:
            return x
        with tracker.paused():
            y = with_summed_gradient(self._comm, x)
        tracker.record(y, REPLICATE_SUMMED)
        return y


def has_gradient(x: Variable) -> bool:
    """Whether ``x`` gets one: also a leaf that is no parameter, for the program."""
    return x.requires_grad and x.dtype.kind == "f"


class PlacementChecker(SummedReads, abc.ABC):
    """Runs calls as ``SummedReads`` does, and checks each that gets shards.

    It records the placements of results.
    """

    def __call__(self, call: HandledCall) -> None:
        super().__call__(call)
        if self.tracker.is_paused:
            return
        if isinstance(call, _core.Call):
            xs, ys = arrays_in(call.arguments), call.results
            self._check(call, xs, ys)
            self.tracker.note_shards(ys)
            operation = operation_of(call)
            if operation is not None and (
                operation.locality == _core.Locality.pointwise
                or operation.name == "broadcast_to"
            ):
                for y in ys:
                    self.tracker.record_uniform(y, xs)
        elif call.node is not None:
            self._check(call.node, call.operands, call.results)
            self.tracker.note_shards(call.results)

    def whole_of(self, x: Variable, site: ReadingSite) -> None:
        """Takes note that the program reads numbers of a shard, which it gets."""
        self.tracker.note_read(site)

    @abc.abstractmethod
    def _check(self, function: Any, xs: Sequence[Any], ys: Sequence[Any]) -> None:
        """Raises ValueError where ``ys`` are wrong, and records their placements.

        Args:
            function: an operation's ``Call``, or a FunctionNode.
            xs: its arrays and Variables.
            ys: its results.
        """

    def _record(self, ys: Sequence[Any], placement: Placement) -> None:
        for y in ys:
            self.tracker.record(y, placement)

    def _record_replicated(
        self, ys: Sequence[Any], placements: Sequence[Placement]
    ) -> None:
        """Of results of replicated operands, of which some gradients may be pending."""
        is_summed = REPLICATE_SUMMED in placements
        self._record(ys, REPLICATE_SUMMED if is_summed else REPLICATE)


def axes_of(call: _core.Call) -> Sequence[int | None] | None:
    """Along which axes a call's operation computes; None if it is not of that kind.

    They are as the caller gave them: None among them stands for all axes.
    """
    operation = operation_of(call)
    if operation is None or operation.locality != _core.Locality.along_axis:
        return None
    axis = call.arguments[operation.arguments.index("axis")]
    return axis if isinstance(axis, (list, tuple)) else (axis,)
