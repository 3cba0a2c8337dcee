"""Arrays and elements repeated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.array.get_item import get_item
from renga.functions.check import check_arrays, check_axis
from renga.utils.extents import check_count, check_memory


def repeat(
    x: ArrayLike, repeats: int | tuple[int, ...], axis: int | None = None
) -> Variable:
    """Each element repeated along an axis; without one, of the flat array.

    Raises:
        TypeError: ``repeats`` is neither an integer nor a tuple of them, or the axis
            none.
        ValueError: a number below 0, or not one per element.
        InvalidType: there is no such axis.
        MemoryError: the result would not fit in memory.
    """
    check_arrays("repeat", x)
    if isinstance(axis, bool):
        raise TypeError(f"repeat: expected an integer as axis, got {axis}")
    given = repeats if isinstance(repeats, tuple) else (repeats,)
    times = tuple(check_count("repeat", "repeats", t, 0) for t in given)
    x = as_variable(x)
    if axis is None:
        x, axis = _core.ops.flatten(x), 0
    axis = check_axis("repeat", x, axis)
    extent = x.shape[axis]
    if len(times) not in (1, extent):
        raise ValueError(f"repeat: expected {extent} repeats, got {len(times)}")
    total = sum(times) if len(times) != 1 else extent * times[0]
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    check_memory("repeat", (*before, total, *after), x.dtype)
    if len(times) != 1:
        check_memory("repeat", (total,), int)
        source = numpy.repeat(numpy.arange(extent), numpy.array(times, int))
        return get_item(x, (slice(None),) * axis + (source,))
    y = _core.ops.reshape(x, (*before, extent, 1, *after))
    y = _core.ops.broadcast_to(y, (*before, extent, times[0], *after))
    return _merged(y, (*before, total, *after), [(times[0], extent)])


def tile(x: ArrayLike, reps: int | tuple[int, ...]) -> Variable:
    """``x`` repeated as a block along each of the last axes.

    Raises:
        TypeError: ``reps`` is neither an integer nor a tuple of them.
        ValueError: a number below 0.
        MemoryError: the result would not fit in memory.
    """
    check_arrays("tile", x)
    given = reps if isinstance(reps, tuple) else (reps,)
    times = tuple(check_count("tile", "reps", t, 0) for t in given)
    times = (1,) * (x.ndim - len(times)) + times
    shape = (1,) * (len(times) - x.ndim) + x.shape
    pairs = list(zip(times, shape))
    extents = check_memory("tile", (t * extent for t, extent in pairs), x.dtype)
    y = _core.ops.reshape(x, [n for _, extent in pairs for n in (1, extent)])
    y = _core.ops.broadcast_to(y, [n for pair in pairs for n in pair])
    return _merged(y, extents, pairs)


def _merged(
    y: Variable, shape: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> Variable:
    """``y`` with each axis of repetitions merged into the next, in memory of its own.

    ``pairs`` are the extents of these two axes. If one of each pair is 1, the merged
    array is still a view, in which a write to an element would change others and ``x``.
    """
    y = _core.ops.reshape(y, shape)
    is_view = y.ndim > 0 and all(1 in pair for pair in pairs)
    return _core.ops.concat([y], 0) if is_view else y
