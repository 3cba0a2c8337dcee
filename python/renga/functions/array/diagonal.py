"""Diagonals of matrices."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays, check_axis
from renga.utils.extents import check_integer
from renga.utils.type_check import InvalidType

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
