"""Which parts of an image each rank needs for its part of what is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from renga import _core
from renga.links.parallel.relayout import EACH, REPLICATED, change_layout
from renga.links.parallel.spatial.grid import Box, SpatialGrid, describe
from renga.links.parallel.spatial.halo import Halo, extend
from renga.links.parallel.spatial.window import SpatialWindow
from renga.utils.type_check import InvalidType
from renga.variable import Variable

Extents = tuple[int, ...]


class Plan:
    """From one image to another: what each rank needs, makes of it and keeps.

    A rank whose part of the result is empty makes one pixel and drops it, so that it
    takes part in whatever the others do.

    Args:
        needed: from the boxes made to the boxes needed for them, which may reach over
            the image.
        made: from the boxes needed to all that comes of them; the boxes made if None.
    """

    def __init__(
        self,
        grid: SpatialGrid,
        inputs: Extents,
        outputs: Extents,
        needed: Any,
        made: Any = None,
    ) -> None:
        self.grid = grid
        self.inputs, self.outputs = grid.boxes(inputs), grid.boxes(outputs)
        boxes = [_one_or_more(box) for box in self.outputs]
        self.needed = [needed(box) for box in boxes]
        self.halo = Halo(grid, self.inputs, [[box] for box in self.needed])
        self.made = boxes if made is None else [made(box) for box in self.needed]

    def extend(self, x: Any, fill: float = 0) -> Variable:
        """What this rank needs, of which it has the part ``x``."""
        return extend(self.halo, x, fill)

    def keep(self, y: Any) -> Variable:
        """This rank's part of the result, from what it has made.

        Zeros where nothing was made. All ranks do the same things: their ways back
        have to meet in one order.
        """
        rank, both = self.grid.rank, list(zip(self.made, self.outputs))
        if any(made != kept for made, kept in both):
            y = _cut(y, *both[rank])
        if any(_missing(made, kept) for made, kept in both):
            before, after = _margins(*both[rank])
            y = _core.ops.pad(y, (0, 0, *before), (0, 0, *after))
        return y


@lru_cache(maxsize=1024)
def plan_convolution(
    grid: SpatialGrid, window: SpatialWindow, inputs: Extents, outputs: Extents
) -> Plan:
    """For what slides a window over an image."""
    return Plan(grid, inputs, outputs, window.inputs_of)


@lru_cache(maxsize=1024)
def plan_transposed(
    grid: SpatialGrid, window: SpatialWindow, inputs: Extents, outputs: Extents
) -> Plan:
    """For the transpose of what slides a window."""
    return Plan(grid, inputs, outputs, window.outputs_around, window.inputs_of)


def _cut(y: Any, made: Box, kept: Box) -> Variable:
    """What there is of a box in what was made."""
    ranges = [(0, n, 1) for n in y.shape[:2]]
    for m, part in zip(made, _common(made, kept)):
        ranges.append((part.start - m.start, len(part), 1))
    return _core.ops.slice(y, ranges)


def _missing(made: Box, kept: Box) -> bool:
    return any(map(any, _margins(made, kept)))


def _margins(made: Box, kept: Box) -> tuple[list[int], list[int]]:
    """How much is missing before and after what there is of a box."""
    both = list(zip(_common(made, kept), kept))
    return [p.start - k.start for p, k in both], [k.stop - p.stop for p, k in both]


def _common(made: Box, kept: Box) -> Box:
    parts = []
    for m, k in zip(made, kept):
        start = min(max(m.start, k.start), k.stop)
        parts.append(range(start, max(start, min(m.stop, k.stop))))
    return tuple(parts)


def replicate(grid: SpatialGrid, x: Any) -> Variable:
    """What is the same on all ranks, for each to use on its part of an image.

    The gradient is the sum of what all ranks find, on every rank.
    """
    return change_layout(x, grid.comm, REPLICATED, EACH)


def require(
    held: bool, name: str, expected: str, grid: SpatialGrid, x: Any, extents: Extents
) -> None:
    """Raises InvalidType, with the rank, its part of the image and the whole.

    Raises:
        InvalidType: not ``held``.
    """
    if not held:
        box = grid.boxes(extents)[grid.rank]
        raise InvalidType(
            f"{name}: expected {expected}, got {x.dtype} {x.shape} on rank {grid.rank} "
            f"of {grid.size}: {describe(box)} of the whole {(*x.shape[:2], *extents)}"
        )


def _one_or_more(box: Sequence[range]) -> Box:
    return tuple(range(p.start, max(p.stop, p.start + 1)) for p in box)
