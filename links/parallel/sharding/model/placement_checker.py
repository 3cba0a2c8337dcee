"""A check that every function of a model computes what it would without shards."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import Any

from renga import _core
from renga.backend import get_array_types
from renga.function_hook import FunctionHook
from renga.links.parallel.sharding.placement import Placement
from renga.links.parallel.sharding.placement_tracker import PlacementTracker
from renga.operations import operation_of
from renga.variable import Variable


class PlacementChecker(FunctionHook, abc.ABC):
    """Checks each function that gets shards, and records placements."""

    name = "placements"

    def __init__(self, tracker: PlacementTracker) -> None:
        self.tracker = tracker

    def forward_postprocess(self, function: Any, in_data: Any) -> None:
        if self.tracker.is_paused:
            return
        if isinstance(function, _core.Call):
            xs, ys = list(_arrays(function.arguments)), function.results
            self._check(function, xs, ys)
            operation = operation_of(function)
            if operation is not None and (
                operation.locality == _core.Locality.pointwise
                or operation.name == "broadcast_to"
            ):
                for y in ys:
                    self.tracker.record_uniform(y, xs)
        else:
            self._check(function, *function._variables)

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


def _arrays(arguments: Any) -> Iterator[Any]:
    for argument in arguments:
        if isinstance(argument, (Variable, *get_array_types())):
            yield argument
        elif isinstance(argument, (list, tuple)):
            yield from _arrays(argument)
