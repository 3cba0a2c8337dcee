"""Means, weighted or not, and sums of squares of samples."""

from __future__ import annotations

import math
from typing import Any

from renga import _core
from renga.core.around_call import overridable
from renga.core.types import ArrayLike
from renga.core.variable import Variable, attach
from renga.functions.array.cast import cast
from renga.functions.check import check_arrays, check_axis, check_floats, check_shape
from renga.utils.type_check import InvalidType


@overridable
def average(
    x: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    weights: ArrayLike | None = None,
    keepdims: bool = False,
) -> Variable:
    """The mean over axes; with ``weights``, ``sum(x weights) / sum(weights)``.

    Shapes:
        x: any
        weights: that of x, or (n,) for the axis of extent n

    Raises:
        ValueError: weights over several axes.
        InvalidType: there is no such axis, or the weights do not fit.
    """
    check_arrays("average", x)
    if x.dtype.kind != "f":
        raise InvalidType(f"average: expected floats, got {x.dtype}")
    if weights is not None:
        return _weighted(x, axis, weights, keepdims)
    if x.dtype.char == "e":  # the sum may overflow float16
        return cast(average(cast(x, "float32"), axis, None, keepdims), "float16")
    y = _core.ops.sum(x, axis, keepdims)
    return y * (y.size / x.size if x.size else math.nan)


mean = average


@attach(Variable)
class _Mean:
    """The method of Variable."""

    def mean(
        self: Any, axis: Any = None, *, weights: Any = None, keepdims: bool = False
    ) -> Variable:
        """The mean over axes, weighted if asked."""
        return average(self, axis, weights, keepdims)


def _weighted(x: Any, axis: Any, weights: Any, keepdims: bool) -> Variable:
    check_arrays("average", weights)
    if isinstance(axis, tuple):
        if len(axis) != 1:
            raise ValueError(
                f"average: expected one axis with weights or None, got {axis}"
            )
        axis = axis[0]
    ops = _core.ops
    if axis is not None:
        axis = check_axis("average", x, axis)
    is_last = axis == x.ndim - 1 and weights.shape == x.shape[-1:]
    if is_last and not keepdims and x.dtype == weights.dtype:
        return ops.divide(ops.matmul(x, weights), ops.sum(weights))
    if weights.shape != x.shape and axis is not None:
        if weights.size != x.shape[axis]:
            raise InvalidType(
                f"average: expected weights of {x.shape} or its axis {axis}, got "
                f"{weights.shape}"
            )
        shape = [1] * x.ndim
        shape[axis] = x.shape[axis]
        weights = ops.reshape(weights, shape)
    weights = ops.broadcast_to(weights, x.shape)
    total = ops.sum(ops.multiply(x, weights), axis, keepdims)
    return ops.divide(total, ops.sum(weights, axis, keepdims))


def batch_l2_norm_squared(x: ArrayLike) -> Variable:
    """The sum of the squares of each sample.

    Shapes:
        x: (N, …)
        return: (N,)

    Raises:
        InvalidType: ``x`` has less than two axes or is not of floats.
    """
    check_floats("batch_l2_norm_squared", x)
    check_shape("batch_l2_norm_squared", x.ndim >= 2, "(N, …)", x)
    return _core.ops.sum_of_squares(x, tuple(range(1, x.ndim)))
