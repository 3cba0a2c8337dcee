"""Pooling over any number of axes, made of poolings of images."""

from __future__ import annotations

import math
from typing import Any, Callable

from renga import _core
from renga.functions.check import check_floats
from renga.utils.conv_nd import as_tuple
from renga.utils.extents import check_window
from renga.utils.type_check import InvalidType

# What poolings of images (N, C, H, W) by a window of (ksize, stride, pad) give.
Pool = Callable[[Any, tuple[Any, Any, Any]], tuple[Any, ...]]


def windows(
    name: str, x: Any, ksize: Any, stride: Any, pad: Any
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(ksize, stride, pad) of each axis; ``stride`` is ``ksize`` if None.

    Raises:
        AssertionError: an option has another number of axes.
        ValueError: a number is out of range.
        InvalidType: ``x`` is no image of floats.
    """
    n = x.ndim - 2
    size = as_tuple(ksize, n)
    step = size if stride is None else as_tuple(stride, n)
    border = as_tuple(pad, n)
    check_floats(name, x)
    if n < 1:
        raise InvalidType(f"{name}: expected x of at least 3 axes, got {x.shape}")
    size, step, border = check_window(name, n, ksize=size, stride=step, pad=border)
    return size, step, border


def pool_rows_and_columns(x: Any, window: Any, pool: Pool) -> tuple[Any, ...]:
    """``x`` with its last two axes (or its only one) pooled."""
    if x.ndim == 3:
        return pool_axis(x, 2, window, pool)
    ops = _core.ops
    part = tuple(option[-2:] for option in window)
    n, c, *between, rows, columns = x.shape
    depth, last = math.prod(between), x.ndim
    array = getattr(x, "array", x)
    if array.strides[1] != array.itemsize:
        ys = pool(ops.reshape(x, (n, c * depth, rows, columns)), part)
        return tuple(ops.reshape(y, (n, c, *between, *y.shape[2:])) for y in ys)
    # Channels adjoin in memory: the axes between join the samples, and nothing moves.
    image = ops.transpose(x, (0, *range(2, last - 2), 1, last - 2, last - 1))
    ys = pool(ops.reshape(image, (n * depth, c, rows, columns)), part)
    back = (0, last - 3, *range(1, last - 3), last - 2, last - 1)
    return tuple(
        ops.transpose(ops.reshape(y, (n, *between, c, *y.shape[2:])), back) for y in ys
    )


def pool_axis(x: Any, axis: int, window: Any, pool: Pool) -> tuple[Any, ...]:
    """``x`` with one axis pooled; the axes after it count as one."""
    ops = _core.ops
    ksize, stride, pad = (option[axis - 2] for option in window)
    n, *before = x.shape[:axis]
    after = x.shape[axis + 1 :]
    image = (n, math.prod(before), x.shape[axis], math.prod(after))
    ys = pool(ops.reshape(x, image), ((ksize, 1), (stride, 1), (pad, 0)))
    return tuple(ops.reshape(y, (n, *before, y.shape[2], *after)) for y in ys)


def pool_all(x: Any, window: Any, pool: Callable[[Any, Any], Any]) -> Any:
    """``x`` with all axes after the first two pooled, the last ones first."""

    def one(image: Any, part: Any) -> tuple[Any]:
        return (pool(image, part),)

    (y,) = pool_rows_and_columns(x, window, one)
    for axis in range(x.ndim - 3, 1, -1):
        (y,) = pool_axis(y, axis, window, one)
    return y
