"""A check that every function of a model computes what it would of whole sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renga import _core
from renga._core import Locality
from renga.core.operations import operation_name, operation_of
from renga.parallel.conversion.placement_checker import PlacementChecker, axes_of
from renga.parallel.placement import Shard
from renga.parallel.redistribute import Redistribute


class SequenceChecker(PlacementChecker):
    """Checks each function that gets this rank's tokens, and records placements.

    Raises:
        ValueError: from a function that needs more than the same token.
    """

    def _check(self, function: Any, xs: Sequence[Any], ys: Sequence[Any]) -> None:
        is_call = isinstance(function, _core.Call)
        if isinstance(function, Redistribute):
            self._record(ys, function.redistribution.target)
            return
        placements = [self.tracker.placement_of_operand(x) for x in xs]
        tokens = [(x, p.axis) for x, p in zip(xs, placements) if isinstance(p, Shard)]
        if not tokens:
            self._record_replicated(ys, placements)
            return
        others = [x for x, p in zip(xs, placements) if not isinstance(p, Shard)]
        if is_call:
            is_local = _is_local(function, *tokens[0])
        else:
            is_local = function.is_elementwise
        if not is_local or not _are_aligned(tokens, others):
            shapes = ", ".join(str(x.shape) for x in xs)
            name = operation_name(function) if is_call else function.label
            raise ValueError(
                f"{name}: expected gather_sequence before it, as every rank has only "
                f"its tokens of the sequences here, got {shapes}"
            )
        axis = max(axis for _, axis in tokens)
        self._record(ys, Shard(axis))


def _is_local(function: Any, x: Any, token_axis: int) -> bool:
    """Whether each token of the result comes from the same token of ``x``."""
    operation, along = operation_of(function), axes_of(function)
    if operation is None:
        return False
    if along is not None:
        return all(i is not None and i % x.ndim > token_axis for i in along)
    if operation.name == "reshape":
        kept = token_axis + 1
        return all(y.shape[:kept] == x.shape[:kept] for y in function.results)
    return bool(operation.locality == Locality.pointwise)


def _are_aligned(tokens: Sequence[tuple[Any, int]], others: Sequence[Any]) -> bool:
    """Whether tokens are on one axis, and other operands the same for all tokens."""
    # Counted from the last axis, as operands are broadcast.
    axes = {axis - x.ndim for x, axis in tokens}
    if len(axes) > 1:
        return False
    (axis,) = axes
    return all(x.ndim < -axis or x.shape[axis] == 1 for x in others)
