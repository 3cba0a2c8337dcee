"""Elements repeated."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.functions.array.get_item import get_item
from renga.functions.check import check_axis
from renga.variable import Variable, as_variable


def repeat(x: Any, repeats: int | tuple[int, ...], axis: int | None = None) -> Variable:
    """Each element along an axis so many times; of the flat array without an axis.

    Raises:
        TypeError: ``repeats`` is neither an integer nor a tuple of them, or the axis
            none.
        ValueError: a number below 0, or not one per element.
        InvalidType: there is no such axis.
    """
    times = repeats if isinstance(repeats, tuple) else (repeats,)
    if not all(isinstance(t, int) for t in times):
        raise TypeError(f"repeat: expected integers as repeats, got {repeats!r}")
    if any(t < 0 for t in times):
        raise ValueError(f"repeat: expected repeats of 0 or more, got {repeats}")
    x = as_variable(x)
    if axis is None:
        x, axis = _core.ops.flatten(x), 0
    axis = check_axis("repeat", x, axis)
    extent = x.shape[axis]
    if len(times) not in (1, extent):
        raise ValueError(f"repeat: expected {extent} repeats, got {len(times)}")
    if len(times) > 1:
        source = numpy.repeat(numpy.arange(extent), times)
        return get_item(x, (slice(None),) * axis + (source,))
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    y = _core.ops.reshape(x, (*before, extent, 1, *after))
    y = _core.ops.broadcast_to(y, (*before, extent, times[0], *after))
    return _core.ops.reshape(y, (*before, extent * times[0], *after))
