"""Images from one rank to all their parts, and back."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga import functions as F
from renga.function_node import FunctionNode
from renga.functions.noise.seed import enable_random_streams
from renga.links.parallel.relayout import PARTIAL, REPLICATED, change_layout
from renga.links.parallel.spatial.grid import (
    Box,
    SpatialGrid,
    WholeFunction,
    index_in,
)
from renga.links.parallel.spatial.halo import Halo
from renga.links.parallel.spatial.parts import of_parts
from renga.links.parallel.spatial.plan import replicate
from renga.variable import Variable, as_variable


class Scatter(FunctionNode):
    """This rank's part of an image that all ranks have."""

    def __init__(self, grid: SpatialGrid, extents: tuple[int, ...]) -> None:
        self.grid = grid
        self.extents = extents
        self.random_stream = grid.rank + 1
        enable_random_streams()

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        own = self.grid.boxes(self.extents)[self.grid.rank]
        return (inputs[0][index_in(own, _whole(self.extents))],)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        return Gather(self.grid, self.extents).apply(grad_outputs)


class Gather(WholeFunction):
    """The whole image of which each rank has a part."""

    random_stream = 0  # the same random numbers on every rank

    def __init__(self, grid: SpatialGrid, extents: tuple[int, ...]) -> None:
        self.grid = grid
        self.extents = extents

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        owned = self.grid.boxes(self.extents)
        wanted = [[_whole(self.extents)]] * self.grid.size
        return tuple(Halo(self.grid, owned, wanted).start(inputs[0])())

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        # All ranks go on with the same image and come back with the same gradient.
        return Scatter(self.grid, self.extents).apply(grad_outputs)


@of_parts(takes="whole")
def scatter_image(comm: Any, x: Any) -> Variable:
    """This rank's part of images that every rank has.

    The gradient is that of the whole images, on every rank.

    Args:
        comm: a communicator, for bands of rows, or a :class:`SpatialGrid`.

    Shapes:
        x: (N, C, H, W) or with more axes, the same on every rank
        result: (N, C, ...) of this rank
    """
    grid = SpatialGrid.of(comm)
    x = as_variable(x)
    if grid.size == 1:
        return x
    return _core.in_dtype_of(Scatter(grid, x.shape[2:]).apply((x,))[0], x)


@of_parts("whole")
def gather_image(comm: Any, x: Any) -> Variable:
    """The whole images, on every rank, of which each has its part ``x``.

    What it has returned, or a model that takes whole images, stays as it is. What is
    computed from the result is computed on every rank alike and counts once: the
    gradient of ``x`` is this rank's part of the gradient of the whole.

    Args:
        comm: a communicator, for bands of rows, or a :class:`SpatialGrid`.

    Shapes:
        x: (N, C, ...) of this rank
        result: (N, C, H, W) or with more axes

    Raises:
        InvalidType: what a rank has is no part that it would be given.
    """
    grid = SpatialGrid.of(comm)
    x = as_variable(x)
    if grid.size == 1 or getattr(x, "is_whole_image", False):
        return x
    extents = grid.whole("gather_image", x)
    y: Any = _core.in_dtype_of(Gather(grid, extents).apply((x,))[0], x)
    y.is_whole_image = True
    return y


@of_parts("whole")
def spatial_sum(comm: Any, x: Any, axis: Any = None) -> Variable:
    """The sum over axes of an image, the spatial ones among them, on every rank.

    Every rank has the same result, and what is computed from it counts once.

    Args:
        comm: a communicator or a :class:`SpatialGrid`.
        axis: axes; all of them by default.

    Shapes:
        x: (N, C, ...) of this rank
        result: x without the axes
    """
    grid, x = SpatialGrid.of(comm), as_variable(x)
    if grid.size > 1:
        grid.require_part("spatial_sum", x)
    return change_layout(F.sum(x, axis), grid.comm, PARTIAL, REPLICATED)


@of_parts("whole")
def spatial_average(comm: Any, x: Any, axis: Any = None) -> Variable:
    """The mean over axes of an image, the spatial ones among them, on every rank.

    Over all axes it makes a loss of what each pixel loses; over the spatial ones it is
    global average pooling. Every rank has the same result, and what is computed from
    it counts once.

    Args:
        comm: a communicator or a :class:`SpatialGrid`.
        axis: axes; all of them by default.

    Shapes:
        x: (N, C, ...) of this rank
        result: x without the axes

    Raises:
        InvalidType: what a rank has is no part that it would be given.
    """
    grid = SpatialGrid.of(comm)
    x = as_variable(x)
    shape = (*x.shape[:2], *grid.whole("spatial_average", x))
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    count = 1
    for i in axes:
        count *= shape[i]
    return spatial_sum(grid, x, axis) * (1 / count)


@of_parts("for parts", takes="whole")
def spatial_broadcast(comm: Any, x: Any) -> Variable:
    """What is the same on every rank, for each to use with its part of an image.

    The gradient is the sum of what the ranks find, on every rank: that of weights, or
    of what is computed from whole images, which multiply or shift all pixels.

    Args:
        comm: a communicator or a :class:`SpatialGrid`.

    Shapes:
        x, result: any, the same on every rank
    """
    return replicate(SpatialGrid.of(comm), as_variable(x))


def _whole(extents: tuple[int, ...]) -> Box:
    return tuple(map(range, extents))
