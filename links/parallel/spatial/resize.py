"""Resizing of images that are sharded over several ranks."""

from __future__ import annotations

import math

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.array.sampling import positions
from renga.links.parallel.spatial.grid import Box, SpatialGrid
from renga.links.parallel.spatial.halo_exchange_plan import (
    HaloExchangePlan,
    require,
    require_same_geometry,
)
from renga.parallel.placement.tracker import placed


@placed()
def spatial_resize_images(
    comm: Communicator | SpatialGrid,
    x: ArrayLike,
    output_shape: tuple[int, int],
    *,
    mode: str = "bilinear",
    align_corners: bool = True,
) -> Variable:
    """``resize_images`` of images that are sharded over a grid of ranks.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        output_shape: the rows and columns of the whole result.

    Shapes:
        x: (N, C, rows, columns) of this rank
        result: (N, C, rows, columns) of this rank

    Raises:
        InvalidType: shapes do not fit.
        ValueError: the mode is neither "bilinear" nor "nearest".
    """
    grid, x = SpatialGrid.of(comm), as_variable(x)
    name = "spatial_resize_images"
    inputs, outputs = grid.whole_extents(name, x), tuple(output_shape)
    require(len(inputs) == 2, name, "images with 4 axes", grid, x, inputs)
    require_same_geometry(grid, name, outputs)
    # There is one position more: a rank with an empty shard computes one pixel and
    # drops it.
    found = [
        numpy.append(positions(n, m, mode, align_corners), 0.0)
        for n, m in zip(inputs, outputs)
    ]

    def needed(box: Box) -> Box:
        return tuple(_used(at[ys.start : ys.stop]) for at, ys in zip(found, box))

    plan = HaloExchangePlan(grid, inputs, outputs, needed)
    rows, columns = (
        at[ys.start : ys.stop] - xs.start
        for at, ys, xs in zip(found, plan.computed[grid.rank], plan.needed[grid.rank])
    )
    return plan.crop(_core.ops.resample_2d(plan.extend(x), rows, columns))


def _used(positions: numpy.ndarray) -> range:
    """The pixels at and around the positions, of which there is one at least."""
    return range(math.floor(positions.min()), math.ceil(positions.max()) + 1)
