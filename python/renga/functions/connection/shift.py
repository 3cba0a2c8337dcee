"""Channels moved by pixels in different directions."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape
from renga.utils.extents import check_window


def shift(x: ArrayLike, ksize: Extents = 3, dilate: Extents = 1) -> Variable:
    """Groups of channels, each shifted by an offset of a window, padded with zeros.

    The window has ``ksize`` positions, ``dilate`` pixels apart, both numbers or pairs
    (rows, columns). It equals a convolution whose filters have a single 1. The middle
    position and the last one are exchanged, so the last group is not shifted, nor are
    the remaining channels if they cannot be divided evenly.

    Shapes:
        x, return: (N, C, H, W)

    Raises:
        ValueError: the window has no middle, or a number is out of range.
        InvalidType: ``x`` is not an image of floats, or has fewer channels than
            positions.

    Source: Wu et al., Shift: a zero FLOP, zero parameter alternative to spatial
    convolutions, 2017.
    """
    check_floats("shift", x)
    (kh, kw), (dy, dx) = check_window("shift", 2, ksize=ksize, dilate=dilate)
    if kh % 2 == 0 or kw % 2 == 0:
        raise ValueError(f"shift: expected odd sizes of the window, got {(kh, kw)}")
    fits = x.ndim == 4 and x.shape[1] >= kh * kw
    check_shape("shift", fits, f"(N, C, H, W) with C >= {kh * kw}", x)
    ops = _core.ops
    size = x.shape[1] // (kh * kw)
    *groups, rest = ops.split_axis(x, [size * (i + 1) for i in range(kh * kw)], 1)
    positions = list(range(kh * kw))
    middle = len(positions) // 2
    positions[middle], positions[-1] = positions[-1], positions[middle]
    moved = []
    for position, group in zip(positions, groups):
        row, column = divmod(position, kw)
        moved.append(_moved(group, (kh // 2 - row) * dy, (kw // 2 - column) * dx))
    return ops.concat([*moved, rest], 1)


def _moved(x: Any, down: int, across: int) -> Variable:
    """``x[i + down, j + across]`` at pixel (i, j), 0 outside."""
    n, c, h, w = x.shape
    ranges, before, after = [(0, n, 1), (0, c, 1)], [0, 0], [0, 0]
    for size, by in ((h, down), (w, across)):
        length = max(size - abs(by), 0)
        ranges.append((min(max(by, 0), size), length, 1))
        before.append(min(max(-by, 0), size))
        after.append(size - length - before[-1])
    return _core.ops.pad(_core.ops.slice(x, ranges), before, after, 0)
