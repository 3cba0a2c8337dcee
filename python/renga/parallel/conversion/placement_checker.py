"""A check that every function of a model computes what it would without shards."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.core.around_call import HandledCall
from renga.core.operations import operation_of
from renga.parallel.conversion.arguments import arrays_in
from renga.parallel.conversion.summed_reads import SummedReads
from renga.parallel.placement import REPLICATE, REPLICATE_SUMMED, Placement


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
            operation = operation_of(call)
            if operation is not None and (
                operation.locality == _core.Locality.pointwise
                or operation.name == "broadcast_to"
            ):
                for y in ys:
                    self.tracker.record_uniform(y, xs)
        elif call.node is not None:
            self._check(call.node, call.operands, call.results)

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
