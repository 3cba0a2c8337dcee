"""Views with any strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from renga import _core
from renga.functions.array.get_item import get_item
from renga.variable import Variable


def as_strided(
    x: Any,
    shape: Sequence[int],
    strides: Sequence[int],
    storage_offset: int | None = None,
) -> Variable:
    """Elements of ``x`` at ``storage_offset + sum(index * strides)``.

    Elements of ``x`` are counted in row-major order, whatever its own strides are.

    Raises:
        ValueError: an element lies before the first or after the last one.
    """
    places = numpy.full(tuple(shape), storage_offset or 0)
    for axis, (extent, stride) in enumerate(zip(shape, strides)):
        steps = numpy.arange(extent) * stride
        places += steps.reshape(-1, *(1,) * (len(shape) - axis - 1))
    size = math.prod(x.shape)
    if places.size and not (0 <= places.min() and places.max() < size):
        raise ValueError(
            f"as_strided: expected elements 0 to {size - 1}, got {places.min()} to "
            f"{places.max()}"
        )
    return get_item(_core.ops.reshape(x, (size,)), places)
