"""Which rank has which part of an image."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy

from renga import _core
from renga.function_node import FunctionNode
from renga.links.parallel.shard import shares
from renga.utils.type_check import InvalidType

Box = tuple[range, ...]  # the positions along each spatial axis

_MOST_AXES = 16
# Operations that make one image of one image, pixel by pixel.
_KEEP_EXTENTS = frozenset(
    """BatchNormalization Cast Clip Dropout ELU FixedBatchNormalization LeakyReLU ReLU
    Sigmoid Softplus Tanh""".split()
)
# Operations whose result is whole where an image among their inputs is.
_KEEP_WHOLE = _KEEP_EXTENTS | frozenset(
    ["_ + _", "_ - _", "_ * _", "_ / _", "_ ** _", "-_", "absolute", "exp", "log"]
    + ["square"]
)


class PartFunction(FunctionNode):
    """A vertex of the graph whose result is each rank's part of an image."""

    grid: SpatialGrid
    result_extents: tuple[int, ...]  # of the whole


class WholeFunction(FunctionNode):
    """A vertex of the graph whose result is a whole image on every rank."""


def comes_whole(x: Any) -> bool:
    """Whether the graph tells that every rank has the whole image ``x``."""
    open_nodes = [getattr(x, "creator_node", None)]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, WholeFunction):
            return True
        if isinstance(node, _core.Node) and node.label in _KEEP_WHOLE:
            open_nodes += [v.creator_node for v in node.inputs if len(v.shape) > 2]
    return False


class SpatialGrid:
    """The ranks of a communicator, each of which has one box of every image.

    Axis ``i`` of an image, after the first two, is shared out over ``shape[i]`` ranks
    as ``shares`` says, and whole where the grid has no such axis: (P,) are bands of
    rows, (1, P) of columns. Wherever a grid is expected, a communicator stands for
    its bands of rows.

    Args:
        comm: the communicator.
        shape: its size as a product.

    Raises:
        ValueError: the product is another number.
    """

    def __init__(self, comm: Any, shape: Sequence[int] | None = None) -> None:
        self.comm = comm
        self.shape = (comm.size,) if shape is None else tuple(shape)
        if math.prod(self.shape) != comm.size or min(self.shape, default=0) < 1:
            raise ValueError(
                f"SpatialGrid: expected a grid of {comm.size} ranks, got {self.shape}"
            )

    @classmethod
    def of(cls, comm: Any) -> SpatialGrid:
        """A grid as it is; a communicator's bands of rows."""
        return comm if isinstance(comm, cls) else cls(comm)

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
        """Each rank's part of an image, in rank order.

        Raises:
            ValueError: the image has fewer axes than the grid.
        """
        if len(extents) < len(self.shape):
            raise ValueError(
                f"SpatialGrid: expected images with {len(self.shape)} spatial axes or "
                f"more, got extents {tuple(extents)}"
            )
        sizes = itertools.chain(self.shape, itertools.repeat(1))
        parts = [shares(extent, size) for extent, size in zip(extents, sizes)]
        return list(itertools.product(*parts))

    def whole(self, link: str, x: Any) -> tuple[int, ...]:
        """The extents of the image of which each rank has its part ``x``.

        The graph tells where it says the same on every rank. Else the ranks tell each
        other what they have, so that all raise the same error, and wait for each other.

        Raises:
            InvalidType: what a rank has is no part that it would be given; the
                message names the link, the rank, its part and the whole.
        """
        extents = self._made_extents(x)
        if extents is not None:
            return extents
        if self.size > 1:
            self.require_part(link, x)
        return self._told_extents(link, x)

    def require_part(self, link: str, x: Any) -> None:
        """Raises InvalidType where the graph tells that every rank has the whole."""
        if comes_whole(x):
            raise InvalidType(
                f"{link}: expected this rank's part of images, got whole ones, "
                f"{x.shape}; scatter_image takes the part"
            )

    def _made_extents(self, x: Any) -> tuple[int, ...] | None:
        """What the function made that ``x`` comes from, pixel by pixel; or None."""
        node = getattr(x, "creator_node", None)
        while isinstance(node, _core.Node) and node.label in _KEEP_EXTENTS:
            node = node.inputs[0].creator_node
        if not isinstance(node, PartFunction):
            return None
        if node.grid.comm is not self.comm or node.grid.shape != self.shape:
            return None
        # Somebody may have given the variable another array.
        part = lengths(self.boxes(node.result_extents)[self.rank])
        return node.result_extents if x.shape[2:] == part else None

    def _told_extents(self, link: str, x: Any) -> tuple[int, ...]:
        form = numpy.full(_MOST_AXES, -1, numpy.int64)
        form[: x.ndim] = x.shape
        forms = self.comm.all_gather(form)
        shapes = [tuple(row[row >= 0].tolist()) for row in forms]
        axes = max(len(shapes[0]) - 2, 0)
        if axes < len(self.shape) or any(len(s) != axes + 2 for s in shapes):
            raise InvalidType(
                f"{link}: expected images on a grid {self._text()}, got {shapes[0]} on "
                f"rank 0" + self._other(shapes)
            )
        extents = []
        for axis in range(axes):
            sizes = numpy.reshape([s[2 + axis] for s in shapes], self.shape)
            line = [slice(None) if i == axis else 0 for i in range(sizes.ndim)]
            extents.append(int(sizes[tuple(line)].sum()))
        self._check(link, shapes, tuple(extents))
        return tuple(extents)

    def _check(
        self, link: str, shapes: list[tuple[int, ...]], extents: tuple[int, ...]
    ) -> None:
        for rank, (shape, box) in enumerate(zip(shapes, self.boxes(extents))):
            part = (*shapes[0][:2], *map(len, box))
            if shape != part:
                raise InvalidType(
                    f"{link}: expected rank {rank} to have {part}, {describe(box)} of "
                    f"the whole {(*shapes[0][:2], *extents)} on a grid "
                    f"{self._text()}, got {shape}"
                )

    def _other(self, shapes: list[tuple[int, ...]]) -> str:
        for rank, shape in enumerate(shapes):
            if len(shape) != len(shapes[0]):
                return f" and {shape} on rank {rank}"
        return ""

    def _text(self) -> str:
        return " x ".join(map(str, self.shape))


def describe(box: Box) -> str:
    """A part of an image in an error message: ``[0:4, 5:10]``."""
    return f"[{', '.join(f'{part.start}:{part.stop}' for part in box)}]"


def intersect(a: Box, b: Box) -> Box | None:
    """What two boxes share; None where that is nothing."""
    both = tuple(
        range(max(p.start, q.start), min(p.stop, q.stop)) for p, q in zip(a, b)
    )
    return both if all(both) else None


def index_in(part: Box, box: Box) -> tuple[Any, ...]:
    """What takes ``part`` of an array (N, C, ...) that holds ``box``."""
    cut = (slice(p.start - b.start, p.stop - b.start) for p, b in zip(part, box))
    return (slice(None), slice(None), *cut)


def lengths(box: Box) -> tuple[int, ...]:
    """The extents of a box."""
    return tuple(map(len, box))
