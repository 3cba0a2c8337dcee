"""Pixels as channels, in windows or squares, and channels as pixels."""

from __future__ import annotations

import math
from typing import Any

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable, as_variable
from renga.functions.array.get_item import get_item
from renga.functions.check import check_arrays, check_floats, check_shape
from renga.utils.conv import get_conv_outsize
from renga.utils.extents import check_count, check_memory, check_window


def im2col(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents = 1,
    pad: Extents = 0,
    cover_all: bool = False,
    dilate: Extents = 1,
) -> Variable:
    """The elements of every window, one window behind each output pixel.

    Sizes are numbers or pairs (rows, columns).

    Shapes:
        x: (N, C, H, W)
        return: (N, C kh kw, H', W')

    Raises:
        ValueError: a size is out of range.
        InvalidType: ``x`` is not an image, or smaller than the window.
        MemoryError: the result would not fit in memory.
    """
    check_arrays("im2col", x)
    check_shape("im2col", x.ndim == 4, "(N, C, H, W)", x)
    size, step, border, gap = check_window(
        "im2col", 2, ksize=ksize, stride=stride, pad=pad, dilate=dilate
    )
    n, c, *extents = x.shape
    outs, after = [], []
    for extent, k, s, p, d in zip(extents, size, step, border, gap):
        out = get_conv_outsize(extent, k, s, p, cover_all, d)
        outs.append(out)
        after.append(max((out - 1) * s + (k - 1) * d + 1 - extent - p, 0))
    check_shape("im2col", min(outs) > 0, f"an image for windows of {size}", x)
    # Checked even without samples: each element of the window is a view.
    check_memory("im2col", (max(n, 1), c * size[0] * size[1], *outs), x.dtype)
    x = _core.ops.pad(x, [0, 0, *border], [0, 0, *after], 0.0)
    columns = []
    for i in range(size[0]):
        for j in range(size[1]):
            starts = i * gap[0], j * gap[1]
            cut = (
                slice(start, start + (out - 1) * s + 1, s)
                for start, out, s in zip(starts, outs, step)
            )
            columns.append(get_item(x, (slice(None), slice(None), *cut)))
    y = _core.ops.stack(columns, 2)
    return _core.ops.reshape(y, (n, c * size[0] * size[1], *outs))


def space2depth(X: ArrayLike, r: int) -> Variable:
    """Squares of ``r`` by ``r`` pixels as channels.

    Shapes:
        X: (N, C, r H, r W)
        return: (N, r r C, H, W)

    Raises:
        InvalidType: ``X`` is not an image of floats.
        ValueError: ``r`` is below 1, or no divisor of height and width.
    """
    check_floats("space2depth", X)
    check_shape("space2depth", X.ndim == 4, "(N, C, H, W)", X)
    r = check_count("space2depth", "r", r)
    n, c, h, w = X.shape
    if h % r or w % r:
        raise ValueError(f"space2depth: expected multiples of {r}, got {X.shape}")
    y = _core.ops.reshape(X, (n, c, h // r, r, w // r, r))
    return _regrouped(X, y, ((0,), (3, 5, 1), (2,), (4,)))


def depth2space(X: ArrayLike, r: int) -> Variable:
    """Channels as squares of ``r`` by ``r`` pixels: the inverse of space2depth.

    Shapes:
        X: (N, r r C, H, W)
        return: (N, C, r H, r W)

    Raises:
        InvalidType: ``X`` is not an image of floats.
        ValueError: ``r`` is below 1, or ``r r`` no divisor of the channels.
    """
    check_floats("depth2space", X)
    check_shape("depth2space", X.ndim == 4, "(N, C, H, W)", X)
    r = check_count("depth2space", "r", r)
    n, c, h, w = X.shape
    if c % (r * r):
        raise ValueError(f"depth2space: expected multiples of {r * r}, got {X.shape}")
    y = _core.ops.reshape(X, (n, r, r, c // (r * r), h, w))
    return _regrouped(X, y, ((0,), (3,), (4, 1), (5, 2)))


def _regrouped(X: Any, y: Any, groups: tuple[tuple[int, ...], ...]) -> Variable:
    """``y`` with groups of its axes joined, in the memory order of the image ``X``."""
    order = _core.in_memory_order(as_variable(X))[0]
    ordered = [groups[axis] for axis in order]
    y = _core.ops.transpose(y, [axis for group in ordered for axis in group])
    extents = iter(y.shape)
    y = _core.ops.reshape(
        y, [math.prod(next(extents) for _ in group) for group in ordered]
    )
    return _core.ops.transpose(y, [order.index(axis) for axis in range(4)])
