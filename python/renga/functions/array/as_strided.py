"""Views with any strides."""

from __future__ import annotations

import math
from collections.abc import Sequence

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays
from renga.utils.extents import check_counts, check_integer, check_memory, is_number


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
