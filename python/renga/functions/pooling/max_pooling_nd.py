"""Largest element of windows over any number of axes."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy

from renga import _core
from renga.functions.check import check_axes
from renga.functions.pooling.axes import (
    pool_all,
    pool_axis,
    pool_rows_and_columns,
    windows,
)
from renga.functions.whole_images import of_whole_images


@of_whole_images
def max_pooling_nd(
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    cover_all: bool = True,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window of an n-dimensional image.

    Sizes are numbers or one per axis; ``stride`` is ``ksize`` if None. ``cover_all``
    lets the last window reach over the end, so that every element is seen. With
    ``return_indices`` also which element of its window each one is, in row-major order.

    Shapes:
        x: (N, C, d1, …, dn)
        return: (N, C, d1', …, dn')

    Raises:
        InvalidType: ``x`` is no image of floats.
    """
    window = windows("max_pooling_nd", x, ksize, stride, pad)
    if return_indices:
        return _with_indices(x, window, cover_all)
    pool = functools.partial(_core.ops.max_pooling_2d, cover_all=cover_all)
    return pool_all(x, window, pool)


def _with_indices(x: Any, window: Any, cover_all: bool) -> tuple[Any, numpy.ndarray]:
    def pool(image: Any, part: Any) -> tuple[Any, ...]:
        return _core.ops.max_pooling_2d_with_indices(image, part, cover_all)

    if math.prod(window[0]) >= 2**63:
        raise ValueError(
            f"max_pooling_nd: expected less than 2^63 elements, got ksize {window[0]}"
        )
    y, at = pool_rows_and_columns(x, window, pool)
    numbers = _steps(at, window[0][-2:])
    for axis in range(x.ndim - 3, 1, -1):
        ksize, stride, pad = (option[axis - 2 :] for option in window)
        y, at = pool_axis(y, axis, window, pool)
        steps = _steps(at, ksize[:1])
        starts = numpy.arange(y.shape[axis]) * stride[0] - pad[0]
        starts = starts.reshape(-1, *(1,) * (y.ndim - axis - 1))
        below = numpy.clip(starts + steps, 0, numbers.shape[axis] - 1)
        found = numpy.take_along_axis(numbers, below, axis)
        nothing = (steps < 0) | (found < 0)
        numbers = numpy.where(nothing, -1, steps * math.prod(ksize[1:]) + found)
    return y, numpy.maximum(numbers, 0).astype(numpy.int64)


def _steps(at: Any, ksize: Any) -> numpy.ndarray:
    """Elements of windows, -1 for a window without any, which has -1 or 255."""
    steps = at.array.astype(int)
    return numpy.where(steps < math.prod(ksize), steps, -1)


def max_pooling_1d(
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    cover_all: bool = True,
    return_indices: bool = False,
) -> Any:
    """``max_pooling_nd`` of (N, C, d); ValueError for other numbers of axes."""
    check_axes("max_pooling_1d", x, 1)
    return max_pooling_nd(x, ksize, stride, pad, cover_all, return_indices)


def max_pooling_3d(
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    cover_all: bool = True,
    return_indices: bool = False,
) -> Any:
    """``max_pooling_nd`` of (N, C, d1, d2, d3); ValueError for other numbers."""
    check_axes("max_pooling_3d", x, 3)
    return max_pooling_nd(x, ksize, stride, pad, cover_all, return_indices)
