"""Plain NumPy arrays: shapes and sums."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy

from renga.core.types import Array, ArrayLike, DTypeLike


def force_array(x: ArrayLike, dtype: DTypeLike | None = None) -> numpy.ndarray:
    """``x`` as an array, of ``dtype`` if given: scalars become 0-d."""
    if isinstance(x, numpy.ndarray):
        return x if dtype is None else x.astype(dtype, copy=False)
    return numpy.array(x, dtype)


def force_type(dtype: numpy.dtype, value: Array) -> Array:
    """``value`` in ``dtype``; itself if it has that dtype."""
    if numpy.isscalar(value):
        return dtype.type(value)
    return value if value.dtype == dtype else value.astype(dtype, copy=False)


def size_of_shape(shape: Sequence[int]) -> int:
    """The number of elements of an array of ``shape``."""
    return math.prod(shape)


def sum_to(x: numpy.ndarray, shape: Sequence[int]) -> numpy.ndarray:
    """The sum over the axes along which ``shape`` was broadcast to ``x.shape``."""
    lead = x.ndim - len(shape)
    broadcast_axes = tuple(lead + i for i, n in enumerate(shape) if n == 1)
    y = x.sum(tuple(range(lead)) + broadcast_axes, keepdims=True)
    return y.squeeze(tuple(range(lead)))
