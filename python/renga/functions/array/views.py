"""Views of arrays: with any strides, of diagonals, and broadcast to one shape."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays, check_axis
from renga.utils.extents import check_counts, check_integer, check_memory, is_number
from renga.utils.type_check import InvalidType


def as_strided(
    x: ArrayLike,
    shape: Sequence[int],
    strides: Sequence[int],
    storage_offset: int | None = None,
) -> Variable:
    """Elements of ``x`` at ``storage_offset + sum(index * strides)``.

    Elements of ``x`` are counted in row-major order, whatever its own strides are.

    Raises:
        ValueError: an element is before the first or after the last one, an extent is
            negative, or there are not as many strides as extents.
        MemoryError: the result would not fit in memory.
    """
    if type(shape) is type(strides) is tuple:
        try:
            return _core.ops.as_strided(x, shape, strides, storage_offset or 0)
        except (TypeError, ValueError, OverflowError):
            pass  # what is wrong is told below
    check_arrays("as_strided", x)
    shape = check_counts("as_strided", "shape", shape, least=0)
    if is_number(strides):
        raise TypeError(f"as_strided: expected a list of strides, got {strides!r}")
    strides = [check_integer("as_strided", "a stride", s) for s in strides]
    first = check_integer("as_strided", "storage_offset", storage_offset or 0)
    if len(strides) != len(shape):
        raise ValueError(f"as_strided: expected strides for {shape}, got {strides}")
    check_memory("as_strided", shape, int)
    size = math.prod(x.shape)
    reach = [(n - 1) * stride for n, stride in zip(shape, strides)]
    lowest = first + sum(min(r, 0) for r in reach)
    highest = first + sum(max(r, 0) for r in reach)
    if 0 not in shape and (lowest < 0 or highest >= size):
        raise ValueError(
            f"as_strided: expected elements 0 to {size - 1}, got {lowest} to {highest}"
        )
    # Unused ones may be too large for the core.
    used = [stride if n > 1 else 0 for n, stride in zip(shape, strides)]
    return _core.ops.as_strided(x, shape, used, 0 if 0 in shape else first)


# Beyond the ends of any axis.
_FAR = 1 << 62


def diagonal(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
    """The diagonal ``x[i, i + offset]`` of two axes, as the last axis.

    Raises:
        InvalidType: there are no such axes.
        ValueError: they are the same.
    """
    if type(offset) is type(axis1) is type(axis2) is int and -_FAR < offset < _FAR:
        return _core.ops.diagonal(x, offset, axis1, axis2)
    check_arrays("diagonal", x)
    if x.ndim < 2:
        raise InvalidType(f"diagonal: expected x of 2 axes or more, got {x.shape}")
    axis1, axis2 = (check_axis("diagonal", x, axis) for axis in (axis1, axis2))
    if axis1 == axis2:
        raise ValueError(f"diagonal: expected two different axes, got {axis1} twice")
    rows, columns = x.shape[axis1], x.shape[axis2]
    offset = check_integer("diagonal", "offset", offset)
    offset = max(-rows, min(offset, columns))  # others may be too large for the core
    return _core.ops.diagonal(x, offset, axis1, axis2)


def broadcast(*args: ArrayLike) -> Variable | tuple[Variable, ...]:
    """Every array broadcast to the common shape.

    Raises:
        InvalidType: there is no array, or no such shape.
    """
    if not args:
        raise InvalidType("broadcast: expected at least one array, got none")
    check_arrays("broadcast", *args)
    shapes = [x.shape for x in args]
    try:
        shape = _common_shape(*shapes)
    except ValueError:
        raise InvalidType(
            f"broadcast: expected shapes that go together, got {shapes}"
        ) from None
    ys = tuple(_core.ops.broadcast_to(x, shape) for x in args)
    return ys if len(ys) > 1 else ys[0]


# NumPy takes as long for it as two operations of views.
_common_shape = functools.lru_cache(maxsize=256)(numpy.broadcast_shapes)
