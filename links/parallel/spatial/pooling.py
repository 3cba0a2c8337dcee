"""Pooling of images whose parts lie on several ranks, and what undoes it."""

from __future__ import annotations

from typing import Any

import numpy

from renga import functions as F
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.parts import of_parts
from renga.links.parallel.spatial.plan import (
    Plan,
    plan_convolution,
    plan_transposed,
    require,
)
from renga.links.parallel.spatial.window import SpatialWindow
from renga.variable import Variable, as_array, as_variable


@of_parts()
def spatial_max_pooling(
    comm: Any,
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    cover_all: bool = True,
    return_indices: bool = False,
) -> Any:
    """``max_pooling_nd`` of images of which each rank has a part.

    Args:
        comm: a communicator, for bands of rows, or a :class:`SpatialGrid`.

    Shapes:
        x: (N, C, ...) of this rank
        result: (N, C, ...) of this rank; twice with ``return_indices``

    Raises:
        InvalidType: shapes do not fit.
    """
    plan, window = _plan("spatial_max_pooling", comm, x, ksize, stride, pad, cover_all)
    # Padding is never the largest.
    y = F.max_pooling_nd(
        plan.extend(x, -numpy.inf),
        window.ksize,
        window.stride,
        0,
        False,
        return_indices,
    )
    if not return_indices:
        return plan.keep(y)
    return plan.keep(y[0]), as_array(plan.keep(y[1]))


@of_parts()
def spatial_average_pooling(
    comm: Any, x: Any, ksize: Any, stride: Any = None, pad: Any = 0
) -> Variable:
    """``average_pooling_nd`` of images of which each rank has a part.

    Args:
        comm: a communicator, for bands of rows, or a :class:`SpatialGrid`.

    Shapes:
        x: (N, C, ...) of this rank
        result: (N, C, ...) of this rank

    Raises:
        InvalidType: shapes do not fit.
    """
    plan, window = _plan("spatial_average_pooling", comm, x, ksize, stride, pad, False)
    y = F.average_pooling_nd(plan.extend(x), window.ksize, window.stride, 0)
    return plan.keep(y)


@of_parts()
def spatial_unpooling(
    comm: Any,
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    outsize: tuple[int, ...] | None = None,
    cover_all: bool = True,
) -> Variable:
    """``unpooling_nd`` of images of which each rank has a part.

    Args:
        comm: a communicator, for bands of rows, or a :class:`SpatialGrid`.
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
    return plan.keep(y)


@of_parts()
def spatial_upsampling_2d(
    comm: Any,
    x: Any,
    indexes: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    outsize: tuple[int, ...] | None = None,
    cover_all: bool = True,
) -> Variable:
    """``upsampling_2d`` of images of which each rank has a part.

    Args:
        comm: a communicator, for bands of rows, or a :class:`SpatialGrid`.
        indexes: as ``spatial_max_pooling`` gives them.
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
    places = plan.halo.start(as_array(indexes))()[0]
    y = F.upsampling_2d(
        plan.extend(x), places, window.ksize, window.stride, 0, cover_all=False
    )
    return plan.keep(y)


def _plan(
    name: str, comm: Any, x: Any, ksize: Any, stride: Any, pad: Any, cover_all: bool
) -> tuple[Plan, SpatialWindow]:
    grid, x = SpatialGrid.of(comm), as_variable(x)
    inputs = grid.whole(name, x)
    window = SpatialWindow.of(ksize, stride, pad, axes=len(inputs))
    outputs = window.out_extents(inputs, cover_all)
    expected = f"images no smaller than the window {window.ksize}"
    require(min(outputs) > 0, name, expected, grid, x, inputs)
    return plan_convolution(grid, window, inputs, outputs), window


def _transposed_plan(
    name: str,
    comm: Any,
    x: Any,
    ksize: Any,
    stride: Any,
    pad: Any,
    outsize: tuple[int, ...] | None,
    cover_all: bool,
) -> tuple[Plan, SpatialWindow]:
    grid, x = SpatialGrid.of(comm), as_variable(x)
    inputs = grid.whole(name, x)
    window = SpatialWindow.of(ksize, stride, pad, axes=len(inputs))
    outputs = tuple(outsize or window.in_extents(inputs, cover_all))
    pooled = window.out_extents(outputs, cover_all)
    expected = f"the pixels {pooled} that {outputs} are pooled to"
    require(pooled == inputs, name, expected, grid, x, inputs)
    return plan_transposed(grid, window, inputs, outputs), window
