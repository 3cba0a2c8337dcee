"""Pooling and unpooling of images that are sharded over several ranks."""

from __future__ import annotations

from typing import Any

import numpy

from renga import functions as F
from renga.communicators import Communicator
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable, as_array, as_variable
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.halo_exchange_plan import (
    HaloExchangePlan,
    plan_transposed_window,
    plan_window,
    require,
    require_same_geometry,
)
from renga.links.parallel.spatial.window import SpatialWindow
from renga.parallel.placement.tracker import placed


@placed()
def spatial_max_pooling(
    comm: Communicator | SpatialGrid,
    x: Variable,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    cover_all: bool = True,
    return_indices: bool = False,
) -> Any:
    """``max_pooling_nd`` of images that are sharded over a grid of ranks.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.

    Shapes:
        x: (N, C, ...) of this rank
        result: (N, C, ...) of this rank; twice with ``return_indices``

    Raises:
        InvalidType: shapes do not fit.
    """
    plan, window = _plan("spatial_max_pooling", comm, x, ksize, stride, pad, cover_all)
    # Padding never is the maximum.
    x, options = plan.extend(x, -numpy.inf), (window.ksize, window.stride, 0, False)
    if not return_indices:
        return plan.crop(F.max_pooling_nd(x, *options))
    found: Any = F.max_pooling_nd(x, *options, return_indices=True)
    y, indices = map(plan.crop, found)
    return y, as_array(indices)


@placed()
def spatial_average_pooling(
    comm: Communicator | SpatialGrid,
    x: Variable,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
) -> Variable:
    """``average_pooling_nd`` of images that are sharded over a grid of ranks.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.

    Shapes:
        x: (N, C, ...) of this rank
        result: (N, C, ...) of this rank

    Raises:
        InvalidType: shapes do not fit.
    """
    plan, window = _plan("spatial_average_pooling", comm, x, ksize, stride, pad, False)
    y = F.average_pooling_nd(plan.extend(x), window.ksize, window.stride, 0)
    return plan.crop(y)


@placed()
def spatial_unpooling(
    comm: Communicator | SpatialGrid,
    x: Variable,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    outsize: tuple[int, ...] | None = None,
    cover_all: bool = True,
) -> Variable:
    """``unpooling_nd`` of images that are sharded over a grid of ranks.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        outsize: the extents of the whole result; the smallest by default.

    Shapes:
        x: (N, C, ...) of this rank
        result: (N, C, ...) of this rank

    Raises:
        InvalidType: shapes do not fit.
    """
    plan, window = _transposed_plan(
        "spatial_unpooling", comm, x, ksize, stride, pad, outsize, cover_all
    )
    y = F.unpooling_nd(plan.extend(x), window.ksize, window.stride, 0, cover_all=False)
    return plan.crop(y)


@placed()
def spatial_upsampling_2d(
    comm: Communicator | SpatialGrid,
    x: Variable,
    indexes: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    outsize: tuple[int, ...] | None = None,
    cover_all: bool = True,
) -> Variable:
    """``upsampling_2d`` of images that are sharded over a grid of ranks.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        indexes: as ``spatial_max_pooling`` returns them.
        outsize: the extents of the whole result; the smallest by default.

    Shapes:
        x, indexes: (N, C, rows, columns) of this rank
        result: (N, C, rows, columns) of this rank

    Raises:
        InvalidType: shapes do not fit.
    """
    plan, window = _transposed_plan(
        "spatial_upsampling_2d", comm, x, ksize, stride, pad, outsize, cover_all
    )
    extended = plan.exchange.start(as_array(indexes))()[0]
    y = F.upsampling_2d(
        plan.extend(x), extended, window.ksize, window.stride, 0, cover_all=False
    )
    return plan.crop(y)


def _plan(
    name: str,
    comm: Communicator | SpatialGrid,
    x: Any,
    ksize: Any,
    stride: Any,
    pad: Any,
    cover_all: bool,
) -> tuple[HaloExchangePlan, SpatialWindow]:
    grid, x = SpatialGrid.of(comm), as_variable(x)
    inputs = grid.whole_extents(name, x)
    window = SpatialWindow.of(ksize, stride, pad, axes=len(inputs))
    outputs = window.out_extents(inputs, cover_all)
    require_same_geometry(grid, name, *window, outputs)
    expected = f"images no smaller than the window {window.ksize}"
    require(min(outputs) > 0, name, expected, grid, x, inputs)
    return plan_window(grid, window, inputs, outputs), window


def _transposed_plan(
    name: str,
    comm: Communicator | SpatialGrid,
    x: Any,
    ksize: Any,
    stride: Any,
    pad: Any,
    outsize: tuple[int, ...] | None,
    cover_all: bool,
) -> tuple[HaloExchangePlan, SpatialWindow]:
    grid, x = SpatialGrid.of(comm), as_variable(x)
    inputs = grid.whole_extents(name, x)
    window = SpatialWindow.of(ksize, stride, pad, axes=len(inputs))
    outputs = tuple(outsize or window.in_extents(inputs, cover_all))
    pooled = window.out_extents(outputs, cover_all)
    expected = f"the pixels {pooled} that {outputs} are pooled to"
    require_same_geometry(grid, name, *window, outputs)
    require(pooled == inputs, name, expected, grid, x, inputs)
    return plan_transposed_window(grid, window, inputs, outputs), window
