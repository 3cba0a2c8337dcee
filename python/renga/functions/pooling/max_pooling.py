"""Largest element of windows."""

from __future__ import annotations

import functools
import math
from typing import Any, Literal, overload

import numpy

from renga import _core
from renga._core import Variable
from renga.core.around_call import overridable, reads_elements
from renga.core.backend import get_array_module
from renga.core.types import Array, ArrayLike, Extents
from renga.functions.check import check_axes
from renga.functions.pooling.axes import (
    pool_all,
    pool_axis,
    pool_rows_and_columns,
    pooling_window_nd,
)
from renga.functions.window import PoolingWindow, over_axes, pooling_window_2d


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
