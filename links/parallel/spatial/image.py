"""Images that change between replicated and sharded; sums over them."""

from __future__ import annotations

import numpy

from renga import _core, functions as F
from renga.communicators import Communicator
from renga.core.function_node import FunctionNode
from renga.core.types import Array, Grads, Indexes, Variables
from renga.core.variable import Variable, as_variable
from renga.functions.noise.seed import give_stream
from renga.links.parallel.spatial.grid import (
    Box,
    ReplicatedFunction,
    SpatialGrid,
    index_in,
)
from renga.links.parallel.spatial.halo_exchange import HaloExchange
from renga.parallel.placement import PARTIAL, REPLICATE, REPLICATE_SUMMED
from renga.parallel.placement.memory_format import channels_last
from renga.parallel.placement.tracker import placed
from renga.parallel.redistribute import Redistribution, with_summed_gradient


class ScatterImages(FunctionNode):
    """This rank's shard of a replicated image."""

    def __init__(self, grid: SpatialGrid, extents: tuple[int, ...]) -> None:
        self.grid = grid
        self.extents = extents
        give_stream(self, grid.comm)

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        own = self.grid.boxes(self.extents)[self.grid.rank]
        return (inputs[0][index_in(own, _whole(self.extents))],)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        return GatherImages(self.grid, self.extents).apply(grad_outputs)


class GatherImages(ReplicatedFunction):
    """The whole image of which each rank has a shard."""

    random_stream = 0  # the same random numbers on every rank

    def __init__(self, grid: SpatialGrid, extents: tuple[int, ...]) -> None:
        self.grid = grid
        self.extents = extents
        self.random_comm = grid.comm

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        owned = self.grid.boxes(self.extents)
        requested = [[_whole(self.extents)]] * self.grid.size
        (whole,) = HaloExchange(self.grid, owned, requested).start(inputs[0])()
        # In one order on all ranks, whatever that of their shards is: random numbers
        # are drawn in the order of memory.
        return (whole if whole.ndim < 4 else channels_last(whole),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        # All ranks compute the same from the image, and so have the same gradient.
        return ScatterImages(self.grid, self.extents).apply(grad_outputs)


@placed(x=REPLICATE)
def scatter_image(
    comm: Communicator | SpatialGrid, x: Variable | numpy.ndarray
) -> Variable:
    """This rank's shard of images that every rank has.

    The gradient is that of the whole images, on every rank.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.

    Shapes:
        x: (N, C, H, W) or with more axes, the same on every rank
        result: (N, C, ...) of this rank
    """
    grid = SpatialGrid.of(comm)
    x = as_variable(x)
    if grid.size == 1:
        return x
    return _core.in_dtype_of(ScatterImages(grid, x.shape[2:]).apply((x,))[0], x)


@placed(REPLICATE)
def gather_image(
    comm: Communicator | SpatialGrid, x: Variable | numpy.ndarray
) -> Variable:
    """The whole images, on every rank, of which ``x`` is this rank's shard.

    Images that it has returned before, or that a model for whole images has returned,
    are returned unchanged. All ranks have to compute the same from the result: the
    gradient of ``x`` is this rank's shard of the gradient of the whole images.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.

    Shapes:
        x: (N, C, ...) of this rank
        result: (N, C, H, W) or with more axes

    Raises:
        InvalidType: the shapes are not those of the ranks' shards.
    """
    grid = SpatialGrid.of(comm)
    x = as_variable(x)
    if grid.size == 1 or getattr(x, "is_whole_image", False):
        return x
    extents = grid.whole_extents("gather_image", x)
    y: Variable = _core.in_dtype_of(GatherImages(grid, extents).apply((x,))[0], x)
    vars(y)["is_whole_image"] = True
    return y


@placed(REPLICATE)
def spatial_sum(
    comm: Communicator | SpatialGrid,
    x: Variable,
    axis: int | tuple[int, ...] | None = None,
) -> Variable:
    """The sum over axes of an image, the spatial ones among them.

    The result is replicated: all ranks have to compute the same from it.

    Args:
        comm: a :class:`SpatialGrid` or a communicator.
        axis: axes; all of them by default.

    Shapes:
        x: (N, C, ...) of this rank
        result: x without the axes
    """
    grid, x = SpatialGrid.of(comm), as_variable(x)
    if grid.size > 1:
        grid.require_shard("spatial_sum", x)
    all_reduce = Redistribution(grid.comm, PARTIAL, REPLICATE)
    return all_reduce.apply(F.sum(x, axis))


@placed(REPLICATE)
def spatial_average(
    comm: Communicator | SpatialGrid,
    x: Variable,
    axis: int | tuple[int, ...] | None = None,
) -> Variable:
    """The mean over axes of an image, the spatial ones among them.

    Over all axes it is the loss, from the losses of all pixels; over the spatial ones
    it is global average pooling. The result is replicated: all ranks have to compute
    the same from it.

    Args:
        comm: a :class:`SpatialGrid` or a communicator.
        axis: axes; all of them by default.

    Shapes:
        x: (N, C, ...) of this rank
        result: x without the axes

    Raises:
        InvalidType: the shapes are not those of the ranks' shards.
    """
    grid = SpatialGrid.of(comm)
    x = as_variable(x)
    shape = (*x.shape[:2], *grid.whole_extents("spatial_average", x))
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    count = 1
    for i in axes:
        count *= shape[i]
    mean: Variable = spatial_sum(grid, x, axis) * (1 / count)
    return mean


@placed(REPLICATE_SUMMED, x=REPLICATE)
def spatial_broadcast(comm: Communicator | SpatialGrid, x: Variable) -> Variable:
    """A replicated variable, for each rank to use with its shard of an image.

    Its gradient is the sum of the gradients that the ranks find, on every rank. It is
    for weights, and for what is computed from whole images, that multiply or shift all
    pixels: ``Replicate(summed_gradient=True)``.

    Args:
        comm: a :class:`SpatialGrid` or a communicator.

    Shapes:
        x, result: any, the same on every rank
    """
    return with_summed_gradient(SpatialGrid.of(comm).comm, x)


def _whole(extents: tuple[int, ...]) -> Box:
    return tuple(map(range, extents))
