"""Pooling over any number of axes, computed by poolings of images."""

from __future__ import annotations

import math
from typing import Any, Callable

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.check import check_arrays, check_floats
from renga.functions.window import PoolingWindow
from renga.utils.conv_nd import as_tuple
from renga.utils.extents import check_window
from renga.utils.type_check import InvalidType

# Pools images (N, C, H, W) by a window; returns one or more arrays.
Pool = Callable[[Any, PoolingWindow], tuple[Any, ...]]


def pooling_window_nd(
    name: str, x: ArrayLike, ksize: Extents, stride: Extents | None, pad: Extents
) -> PoolingWindow:
    """The window over the axes of ``x``; ``stride`` is ``ksize`` if None.

    Raises:
        AssertionError: an option has another number of axes.
        ValueError: a number is out of range.
        InvalidType: ``x`` is not an image of floats.
    """
    check_arrays(name, x)
    n = x.ndim - 2
    size = as_tuple(ksize, n, name, "ksize")
    step = size if stride is None else as_tuple(stride, n, name, "stride")
    border = as_tuple(pad, n, name, "pad")
    check_floats(name, x)
    if n < 1:
        raise InvalidType(f"{name}: expected x of at least 3 axes, got {x.shape}")
    return PoolingWindow(*check_window(name, n, ksize=size, stride=step, pad=border))


def pool_rows_and_columns(
    x: ArrayLike, window: PoolingWindow, pool: Pool
) -> tuple[Variable, ...]:
    """``x`` with its last two axes (or its only one) pooled."""
    ops = _core.ops
    if x.ndim == 3:  # an image of one row
        row = PoolingWindow(*((n, option[0]) for n, option in zip((1, 1, 0), window)))
        ys = pool(ops.reshape(x, (*x.shape[:2], 1, x.shape[2])), row)
        return tuple(ops.reshape(y, (*y.shape[:2], y.shape[3])) for y in ys)
    last_two = PoolingWindow(*(option[-2:] for option in window))
    n, c, *between, rows, columns = x.shape
    depth, last = math.prod(between), x.ndim
    array: Any = getattr(x, "array", x)
    if array.strides[1] != array.itemsize:
        ys = pool(ops.reshape(x, (n, c * depth, rows, columns)), last_two)
        return tuple(ops.reshape(y, (n, c, *between, *y.shape[2:])) for y in ys)
    # Channels last in memory: the axes between join the samples without a copy.
    image = ops.transpose(x, (0, *range(2, last - 2), 1, last - 2, last - 1))
    ys = pool(ops.reshape(image, (n * depth, c, rows, columns)), last_two)
    back = (0, last - 3, *range(1, last - 3), last - 2, last - 1)
    return tuple(
        ops.transpose(ops.reshape(y, (n, *between, c, *y.shape[2:])), back) for y in ys
    )


def pool_axis(
    x: ArrayLike, axis: int, window: PoolingWindow, pool: Pool
) -> tuple[Variable, ...]:
    """``x`` with one axis pooled; the axes after it count as one."""
    ops = _core.ops
    ksize, stride, pad = (option[axis - 2] for option in window)
    n, *before = x.shape[:axis]
    after = x.shape[axis + 1 :]
    image = (n, math.prod(before), x.shape[axis], math.prod(after))
    column = PoolingWindow((ksize, 1), (stride, 1), (pad, 0))
    ys = pool(ops.reshape(x, image), column)
    return tuple(ops.reshape(y, (n, *before, y.shape[2], *after)) for y in ys)


def pool_all(
    x: ArrayLike,
    window: PoolingWindow,
    pool: Callable[[ArrayLike, PoolingWindow], Variable],
) -> Variable:
    """``x`` with all axes after the first two pooled, the last ones first."""

    def pool_image(image: ArrayLike, window: PoolingWindow) -> tuple[Any]:
        return (pool(image, window),)

    (y,) = pool_rows_and_columns(x, window, pool_image)
    for axis in range(x.ndim - 3, 1, -1):
        (y,) = pool_axis(y, axis, window, pool_image)
    return y
