"""Fully connected layer."""

from __future__ import annotations

import math

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays
from renga.utils.extents import check_count
from renga.utils.type_check import InvalidType


def linear(
    x: ArrayLike, W: ArrayLike, b: ArrayLike | None = None, n_batch_axes: int = 1
) -> Variable:
    """``x W^T + b``; the axes of ``x`` after the batch axes count as one.

    Shapes:
        x: (N, …) with I elements per sample
        W: (O, I)
        b: (O,)
        return: (N, O)

    Raises:
        ValueError: no batch axis.
        InvalidType: shapes or dtypes do not fit.
    """
    if n_batch_axes == 1 and getattr(x, "ndim", None) == 2:
        return _core.ops.linear(x, W, b)
    check_arrays("linear", x, W)
    n_batch_axes = check_count("linear", "n_batch_axes", n_batch_axes)
    if x.ndim <= n_batch_axes:
        raise InvalidType(
            f"linear: expected x of more than n_batch_axes={n_batch_axes} axes, got "
            f"{x.shape}"
        )
    batch = x.shape[:n_batch_axes]
    flat = (math.prod(batch), math.prod(x.shape[n_batch_axes:]))
    if W.ndim == 2 and flat[1] != W.shape[1]:
        raise InvalidType(
            f"linear: expected x with {W.shape[1]} elements per sample for W of "
            f"{W.shape}, got {flat[1]}: x of {x.shape} with n_batch_axes={n_batch_axes}"
            f"{_hint(x.shape, W.shape[1])}"
        )
    y = _core.ops.linear(_core.ops.reshape(x, flat), W, b)
    return y if n_batch_axes == 1 else _core.ops.reshape(y, (*batch, y.shape[1]))


def _hint(shape: tuple[int, ...], size: int) -> str:
    """Which n_batch_axes would fit, if one does."""
    for axes in range(1, len(shape)):
        if math.prod(shape[axes:]) == size:
            return f"; n_batch_axes={axes} would fit"
    return ""
