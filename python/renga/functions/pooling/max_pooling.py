"""Largest element of windows, and of the cells of a pyramid of grids."""

from __future__ import annotations

import functools
import math
from typing import Any, Literal, overload

import numpy

from renga import _core
from renga.core.around_call import overridable, reads_elements
from renga.core.backend import get_array_module
from renga.core.types import Array, ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.check import check_axes, check_floats, check_shape
from renga.functions.pooling.axes import (
    pool_all,
    pool_axis,
    pool_rows_and_columns,
    pooling_window_nd,
)
from renga.functions.window import PoolingWindow, over_axes, pooling_window_2d
from renga.utils.extents import check_count, check_memory


@overload
def max_pooling_2d(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    cover_all: bool = True,
    return_indices: Literal[False] = False,
) -> Variable: ...
@overload
def max_pooling_2d(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    cover_all: bool = True,
    *,
    return_indices: Literal[True],
) -> tuple[Variable, Array]: ...
@overridable
def max_pooling_2d(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    cover_all: bool = True,
    return_indices: bool = False,
) -> Variable | tuple[Variable, Array]:
    """The largest element of each window of an image.

    Sizes are numbers or pairs (rows, columns); ``stride`` is ``ksize`` if None.
    ``cover_all`` lets the last window extend beyond the end, so windows cover every
    pixel. With ``return_indices`` the index of the maximum in its window is returned,
    too.

    Shapes:
        x: (N, C, H, W)
        return: (N, C, H', W')

    Raises:
        ValueError: ``x`` has not 4 axes.
        InvalidType: ``x`` is not an image of floats.
    """
    check_axes("max_pooling_2d", x, 2)
    window = pooling_window_2d("max_pooling_2d", ksize, stride, pad)
    if return_indices:
        return _with_indices(x, window, cover_all)
    return _core.ops.max_pooling_2d(x, window, cover_all)


@reads_elements
def _with_indices(x: Any, window: Any, cover_all: bool) -> tuple[Any, numpy.ndarray]:
    y, at = _core.ops.max_pooling_2d_with_indices(x, window, cover_all)
    # A recorder knows results of operations, and what later functions do with them.
    at = _core.ops.cast(at, numpy.dtype("int64")).array
    # The core marks a window without elements by -1 or 255.
    at[(at < 0) | (at >= math.prod(window.ksize))] = 0
    return y, at


@overload
def max_pooling_nd(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    cover_all: bool = True,
    return_indices: Literal[False] = False,
) -> Variable: ...
@overload
def max_pooling_nd(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    cover_all: bool = True,
    *,
    return_indices: Literal[True],
) -> tuple[Variable, Array]: ...
@overridable
@reads_elements
def max_pooling_nd(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    cover_all: bool = True,
    return_indices: bool = False,
) -> Variable | tuple[Variable, Array]:
    """The largest element of each window of an n-dimensional image.

    Sizes are numbers or one per axis; ``stride`` is ``ksize`` if None. ``cover_all``
    lets the last window extend beyond the end, so windows cover every element. With
    ``return_indices`` the row-major index of the maximum in its window is returned,
    too.

    Shapes:
        x: (N, C, d1, …, dn)
        return: (N, C, d1', …, dn')

    Raises:
        InvalidType: ``x`` is not an image of floats.
    """
    window = pooling_window_nd("max_pooling_nd", x, ksize, stride, pad)
    if return_indices:
        return _nd_with_indices(x, window, cover_all)
    pool = functools.partial(_core.ops.max_pooling_2d, cover_all=cover_all)
    return pool_all(x, window, pool)


def _nd_with_indices(
    x: Any, window: PoolingWindow, cover_all: bool
) -> tuple[Any, numpy.ndarray]:
    def pool(image: ArrayLike, window: PoolingWindow) -> tuple[ArrayLike, ...]:
        return _core.ops.max_pooling_2d_with_indices(image, window, cover_all)

    if math.prod(window.ksize) >= 2**63:
        raise ValueError(
            "max_pooling_nd: expected fewer than 2^63 elements of a window, got ksize "
            f"{window.ksize}"
        )
    y, at = pool_rows_and_columns(x, window, pool)
    xp = get_array_module(at)
    numbers = _element_numbers(at, window.ksize[-2:])
    for axis in range(x.ndim - 3, 1, -1):
        ksize, stride, pad = (option[axis - 2 :] for option in window)
        y, at = pool_axis(y, axis, window, pool)
        steps = _element_numbers(at, ksize[:1])
        starts = xp.arange(y.shape[axis]) * stride[0] - pad[0]
        starts = starts.reshape(-1, *(1,) * (y.ndim - axis - 1))
        below = numpy.clip(starts + steps, 0, numbers.shape[axis] - 1)
        found = numpy.take_along_axis(numbers, below, axis)
        nothing = (steps < 0) | (found < 0)
        numbers = numpy.where(nothing, -1, steps * math.prod(ksize[1:]) + found)
    return y, numpy.maximum(numbers, 0).astype(numpy.int64)


def _element_numbers(at: Any, ksize: Any) -> numpy.ndarray:
    """The core's numbers of elements in windows, -1 for a window without elements.

    The core marks such a window by -1 or 255.
    """
    numbers = at.array.astype(int)
    return numpy.where(numbers < math.prod(ksize), numbers, -1)


max_pooling_1d = over_axes(1, "max_pooling_1d", max_pooling_nd)
max_pooling_3d = over_axes(3, "max_pooling_3d", max_pooling_nd)


@overridable
def spatial_pyramid_pooling_2d(
    x: ArrayLike, pyramid_height: int, pooling: str | None = None
) -> Variable:
    """The largest elements of 1, 4, 16, … equal cells of an image, as channels.

    Images that cannot be divided equally are padded with minus infinity.

    Shapes:
        x: (N, C, H, W)
        return: (N, C (4^pyramid_height - 1) / 3, 1, 1)

    Raises:
        ValueError: ``pooling`` is not "max", or there is no level.
        InvalidType: ``x`` is not an image of floats with pixels.
        MemoryError: the result would not fit in memory.

    Source: He et al., Spatial pyramid pooling in deep convolutional networks, 2014.
    """
    if pooling != "max":
        raise ValueError(
            f"spatial_pyramid_pooling_2d: expected pooling 'max', got {pooling!r}"
        )
    check_floats("spatial_pyramid_pooling_2d", x)
    check_shape("spatial_pyramid_pooling_2d", x.ndim == 4, "(N, C, H, W)", x)
    check_shape("spatial_pyramid_pooling_2d", 0 not in x.shape[2:], "pixels", x)
    height = check_count("spatial_pyramid_pooling_2d", "pyramid_height", pyramid_height)
    cells = (4 ** min(height, 31) - 1) // 3  # more would overflow all the same
    check_memory(
        "spatial_pyramid_pooling_2d", (x.shape[0], x.shape[1] * cells, 1, 1), x.dtype
    )
    levels = []
    for level in range(height):
        cells = 2**level
        size = [-(-extent // cells) for extent in x.shape[2:]]
        pad = [(k * cells - n) // 2 for k, n in zip(size, x.shape[2:])]
        y = max_pooling_2d(x, size, size, pad, cover_all=True)
        channels = x.shape[1] * y.shape[2] * y.shape[3]
        levels.append(_core.ops.reshape(y, (x.shape[0], channels, 1, 1)))
    return _core.ops.concat(levels, 1)
