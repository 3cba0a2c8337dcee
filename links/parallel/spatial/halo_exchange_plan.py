"""Plans of functions that need more of an image than the shard that a rank has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from renga import _core
from renga.core.variable import Variable
from renga.links.parallel.spatial.grid import (
    Box,
    SpatialGrid,
    describe_box,
    once_per_grid,
)
from renga.links.parallel.spatial.halo_exchange import HaloExchange, exchange_halo
from renga.links.parallel.spatial.window import SpatialWindow
from renga.utils.type_check import InvalidType

Extents = tuple[int, ...]


class HaloExchangePlan:
    """From shards of one image to shards of another: exchange, compute, crop.

    A rank whose shard of the result is empty computes one pixel and drops it, so that
    it takes part in the communication of the others.

    Args:
        inputs, outputs: the extents of the whole images.
        needed: from a box of outputs to the box of inputs that it is computed from,
            which may reach beyond the image.
        computed: from a box of inputs to all outputs computed from it; by default no
            more than the box of outputs.
    """

    def __init__(
        self,
        grid: SpatialGrid,
        inputs: Extents,
        outputs: Extents,
        needed: Callable[[Box], Box],
        computed: Callable[[Box], Box] | None = None,
    ) -> None:
        self.rank = grid.rank
        # By rank:
        self.inputs, self.outputs = grid.boxes(inputs), grid.boxes(outputs)
        boxes = [_not_empty(box) for box in self.outputs]
        self.needed = [needed(box) for box in boxes]
        self.computed = (
            boxes if computed is None else [computed(box) for box in self.needed]
        )
        self.exchange = HaloExchange(grid, self.inputs, [[box] for box in self.needed])

    def extend(self, x: Variable, fill: float = 0) -> Variable:
        """The box of inputs that this rank needs, from its shard ``x``."""
        return exchange_halo(self.exchange, x, fill)

    def crop(self, y: Variable) -> Variable:
        """This rank's shard of the outputs, from those it has computed.

        It is zero where none were computed. All ranks apply the same functions, since
        they have to communicate in one order in the backward pass.
        """
        pairs = list(zip(self.computed, self.outputs))
        if any(computed != own for computed, own in pairs):
            y = _crop(y, *pairs[self.rank])
        margins = [_margins(computed, own) for computed, own in pairs]
        if any(any(before) or any(after) for before, after in margins):
            before, after = margins[self.rank]
            y = _core.ops.pad(y, (0, 0, *before), (0, 0, *after))
        return y


@once_per_grid
def plan_window(
    grid: SpatialGrid, window: SpatialWindow, inputs: Extents, outputs: Extents
) -> HaloExchangePlan:
    """Of a function that slides a window over an image."""
    return HaloExchangePlan(grid, inputs, outputs, window.inputs_of)


@once_per_grid
def plan_transposed_window(
    grid: SpatialGrid, window: SpatialWindow, inputs: Extents, outputs: Extents
) -> HaloExchangePlan:
    """Of the transpose of a function that slides a window."""
    return HaloExchangePlan(
        grid, inputs, outputs, window.outputs_around, window.inputs_of
    )


@once_per_grid
def require_same_geometry(grid: SpatialGrid, name: str, *geometry: object) -> bool:
    """Checks that all ranks call a function with the same extents.

    Every rank calls it. A program may have taken them from the shape of its shard.

    Raises:
        InvalidType: they differ.
    """
    if grid.size == 1:
        return True
    found = grid.comm.allgather_obj(geometry)
    for rank, other in enumerate(found):
        if other != found[0]:
            raise InvalidType(
                f"{name}: expected the extents of whole images, the same on all ranks, "
                f"got {_text(found[0])} on rank 0 and {_text(other)} on rank {rank}"
            )
    return True


def _text(geometry: Sequence[object]) -> str:
    return ", ".join(map(str, geometry))


def _crop(y: Any, computed: Box, own: Box) -> Variable:
    """The overlap of two boxes, from an array of the first."""
    ranges = [(0, n, 1) for n in y.shape[:2]]
    for c, overlap in zip(computed, _overlap(computed, own)):
        ranges.append((overlap.start - c.start, len(overlap), 1))
    return _core.ops.slice(y, ranges)


def _margins(computed: Box, own: Box) -> tuple[list[int], list[int]]:
    """How many pixels of the own box are missing before and after the overlap."""
    pairs = list(zip(_overlap(computed, own), own))
    return [p.start - o.start for p, o in pairs], [o.stop - p.stop for p, o in pairs]


def _overlap(computed: Box, own: Box) -> Box:
    """The overlap of two boxes; empty ranges lie inside of the own box."""
    overlap = []
    for c, o in zip(computed, own):
        start = min(max(c.start, o.start), o.stop)
        overlap.append(range(start, max(start, min(c.stop, o.stop))))
    return tuple(overlap)


def require(
    held: bool,
    name: str,
    expected: str,
    grid: SpatialGrid,
    x: Variable,
    extents: Extents,
) -> None:
    """Raises an error that shows the rank, its shard and the whole image.

    Raises:
        InvalidType: not ``held``.
    """
    if not held:
        box = grid.boxes(extents)[grid.rank]
        raise InvalidType(
            f"{name}: expected {expected}, got {x.dtype} {x.shape} on rank {grid.rank} "
            f"of {grid.size}: {describe_box(box)} of the whole "
            f"{(*x.shape[:2], *extents)}"
        )


def _not_empty(box: Sequence[range]) -> Box:
    """The box, with one pixel if it is empty."""
    return tuple(range(p.start, max(p.stop, p.start + 1)) for p in box)
