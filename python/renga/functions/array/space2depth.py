"""Pixels as channels, and channels as pixels."""

from __future__ import annotations

import math
from typing import Any

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.check import check_floats, check_shape
from renga.utils.extents import check_count


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
