"""Which rank has which box of an image."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy

from renga._core import Locality
from renga.communicators import Communicator
from renga.core.function_node import FunctionNode
from renga.core.operations import operation_of
from renga.core.variable import Variable
from renga.parallel.placement.shard_ranges import shard_ranges
from renga.utils.type_check import InvalidType

Box = tuple[range, ...]  # positions along each spatial axis

_MAX_AXES = 16
_MAX_PLANS = 1024  # of a grid

T = TypeVar("T")


class ShardedFunction(FunctionNode):
    """A graph node whose result is each rank's shard of an image."""

    grid: SpatialGrid
    result_extents: tuple[int, ...]  # of the whole image


class ReplicatedFunction(FunctionNode):
    """A graph node whose result is a whole image on every rank."""


def is_replicated_in_graph(x: Variable) -> bool:
    """Whether ``x`` depends, pixel by pixel, on a replicated image."""
    pending: list[Any] = [getattr(x, "creator_node", None)]
    while pending:
        node = pending.pop()
        if isinstance(node, ReplicatedFunction):
            return True
        if _keeps_placement(node):
            pending += [v.creator_node for v in node.inputs if len(v.shape) > 2]
    return False


def _keeps_placement(node: Any) -> bool:
    """Whether a result is replicated if an image that it is computed from is."""
    operation = operation_of(node)
    kept = (Locality.pointwise, Locality.channelwise)
    return operation is not None and operation.locality in kept


def _keeps_extents(node: Any) -> bool:
    """Whether a result has the extents of the first input, the only image."""
    operation = operation_of(node)
    if operation is None or not _keeps_placement(node):
        return False
    return operation.inputs == 1 or len(node.inputs) == 1


class SpatialGrid:
    """The ranks of a communicator, each of which has one box of every image.

    Axis ``2 + i`` of an image is sharded over ``shape[i]`` ranks as by
    ``shard_ranges``, and not sharded where the grid has no such axis: (P,) are bands
    of rows, (1, P) bands of columns. Wherever a grid is expected, a communicator
    stands for bands of rows.

    Args:
        comm: the communicator.
        shape: its size as a product.

    Raises:
        ValueError: the product is another number.
    """

    def __init__(self, comm: Communicator, shape: Sequence[int] | None = None) -> None:
        self.comm = comm
        self.shape = (comm.size,) if shape is None else tuple(shape)
        if math.prod(self.shape) != comm.size or min(self.shape, default=0) < 1:
            raise ValueError(
                f"SpatialGrid: expected a grid of {comm.size} ranks, got {self.shape}"
            )
        self.plans: dict[tuple[Any, ...], Any] = {}  # of once_per_grid()

    @classmethod
    def of(cls, comm: Communicator | SpatialGrid) -> SpatialGrid:
        """The grid itself, or bands of rows over a communicator."""
        return comm if isinstance(comm, SpatialGrid) else cls(comm)

    def __deepcopy__(self, memo: Any) -> SpatialGrid:
        """Itself: the copy of a model is on the same ranks."""
        return self

    @property
    def rank(self) -> int:
        return self.comm.rank

    @property
    def size(self) -> int:
        return self.comm.size

    def boxes(self, extents: Sequence[int]) -> list[Box]:
        """Each rank's box of an image, in rank order.

        Raises:
            ValueError: the image has fewer axes than the grid.
        """
        if len(extents) < len(self.shape):
            raise ValueError(
                f"SpatialGrid: expected images with {len(self.shape)} spatial axes or "
                f"more, got extents {tuple(extents)}"
            )
        sizes = itertools.chain(self.shape, itertools.repeat(1))
        ranges = [shard_ranges(extent, size) for extent, size in zip(extents, sizes)]
        return list(itertools.product(*ranges))

    def whole_extents(self, name: str, x: Variable) -> tuple[int, ...]:
        """The extents of the whole image of which ``x`` is this rank's shard.

        They follow from the graph where that has them on every rank. Otherwise the
        ranks tell each other the shapes of their shards, so that all raise the same
        error.

        Args:
            name: of the link or function, for the error.

        Raises:
            InvalidType: the shapes are not those of the ranks' boxes; the message
                names the rank, its box and the whole.
        """
        extents = self._extents_in_graph(x)
        if extents is not None:
            return extents
        if self.size > 1:
            self.require_shard(name, x)
        return self._gathered_extents(name, x)

    def require_shard(self, name: str, x: Variable) -> None:
        """Checks that ``x`` is no replicated image.

        Raises:
            InvalidType: it follows from the graph that ``x`` is replicated.
        """
        if is_replicated_in_graph(x):
            raise InvalidType(
                f"{name}: expected this rank's shard of images, got whole images, "
                f"{x.shape}; scatter_image takes the shard"
            )

    def _extents_in_graph(self, x: Any) -> tuple[int, ...] | None:
        """Those of the function that ``x`` depends on, pixel by pixel; or None."""
        node: Any = getattr(x, "creator_node", None)
        while _keeps_extents(node):
            node = node.inputs[0].creator_node
        if not isinstance(node, ShardedFunction):
            return None
        if node.grid.comm is not self.comm or node.grid.shape != self.shape:
            return None
        # The user may have given the variable another array.
        own = extents_of(self.boxes(node.result_extents)[self.rank])
        return node.result_extents if x.shape[2:] == own else None

    def _gathered_extents(self, name: str, x: Any) -> tuple[int, ...]:
        padded = numpy.full(_MAX_AXES, -1, numpy.int64)
        padded[: x.ndim] = x.shape
        rows = self.comm.all_gather(padded)
        shapes = [tuple(row[row >= 0].tolist()) for row in rows]
        axes = max(len(shapes[0]) - 2, 0)
        if axes < len(self.shape) or any(len(s) != axes + 2 for s in shapes):
            raise InvalidType(
                f"{name}: expected images on a grid {self._text()}, got {shapes[0]} on "
                f"rank 0" + self._other(shapes)
            )
        extents = []
        for axis in range(axes):
            sizes = numpy.reshape([s[2 + axis] for s in shapes], self.shape)
            line = [slice(None) if i == axis else 0 for i in range(sizes.ndim)]
            extents.append(int(sizes[tuple(line)].sum()))
        self._check(name, shapes, tuple(extents))
        return tuple(extents)

    def _check(
        self, name: str, shapes: list[tuple[int, ...]], extents: tuple[int, ...]
    ) -> None:
        for rank, (shape, box) in enumerate(zip(shapes, self.boxes(extents))):
            expected = (*shapes[0][:2], *map(len, box))
            if shape != expected:
                raise InvalidType(
                    f"{name}: expected rank {rank} to have {expected}, "
                    f"{describe_box(box)} of the whole "
                    f"{(*shapes[0][:2], *extents)} on a grid {self._text()}, got "
                    f"{shape}"
                )

    def _other(self, shapes: list[tuple[int, ...]]) -> str:
        for rank, shape in enumerate(shapes):
            if len(shape) != len(shapes[0]):
                return f" and {shape} on rank {rank}"
        return ""

    def _text(self) -> str:
        return " x ".join(map(str, self.shape))


def once_per_grid(make: Callable[..., T]) -> Callable[..., T]:
    """Calls a function of a grid and hashable values once for each of them.

    Results are kept as long as the grid. They hold its communicator but not the grid:
    without a reference cycle the communicator's shared memory is freed at once.
    """

    @functools.wraps(make)
    def kept(grid: SpatialGrid, *values: object) -> T:
        key = (make, *values)
        found: T | None = grid.plans.get(key)
        if found is None:
            if len(grid.plans) >= _MAX_PLANS:
                grid.plans.clear()
            found = grid.plans[key] = make(grid, *values)
        return found

    return kept


def describe_box(box: Box) -> str:
    """A box of an image in an error message: ``[0:4, 5:10]``."""
    return f"[{', '.join(f'{p.start}:{p.stop}' for p in box)}]"


def intersect(a: Box, b: Box) -> Box | None:
    """The overlap of two boxes; None where it is empty."""
    overlap = tuple(
        range(max(p.start, q.start), min(p.stop, q.stop)) for p, q in zip(a, b)
    )
    return overlap if all(overlap) else None


def index_in(part: Box, box: Box) -> tuple[slice, ...]:
    """The index of a part of a box in an array (N, C, ...) of the box."""
    slices = (slice(p.start - b.start, p.stop - b.start) for p, b in zip(part, box))
    return (slice(None), slice(None), *slices)


def extents_of(box: Box) -> tuple[int, ...]:
    """The extents of a box."""
    return tuple(map(len, box))
