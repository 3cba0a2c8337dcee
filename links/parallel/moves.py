"""Moves of arrays between ranks, along any axis and of any shares.

Each starts at once and returns a function that waits, if asked to go on in the
background, and gives the result. Images go as they lie in memory, channels last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy

from renga import _core

ops = _core.ops
Finish = Callable[[], numpy.ndarray]


def gather(
    comm: Any, x: numpy.ndarray, axis: int, parts: Sequence[int], wait: bool
) -> Finish:
    """All ranks' parts of an axis, one after another."""
    y = empty_image(_with_extent(x.shape, axis, sum(parts)), x.dtype)
    own, at = in_memory_order(x), _moved(axis, x.ndim)
    if len(set(parts)) == 1:
        rows = _rows(in_memory_order(y), at, comm.size)
        return _finish(comm.all_gather(own, out=rows, wait=wait), wait, y)
    padded = _padded(own, {at: max(parts)})
    rows = _core.empty((comm.size, *padded.shape), x.dtype)
    work = comm.all_gather(padded, out=rows, wait=wait)
    places = split(in_memory_order(y), at, parts)
    return _finish(work, wait, y, zip(places, rows))


def reduce_scatter(
    comm: Any, x: numpy.ndarray, axis: int, parts: Sequence[int], wait: bool
) -> Finish:
    """This rank's part along an axis of the sum of all ranks' ``x``."""
    y = empty_image(_with_extent(x.shape, axis, parts[comm.rank]), x.dtype)
    whole, at = in_memory_order(x), _moved(axis, x.ndim)
    if len(set(parts)) == 1:
        rows = _rows(whole, at, comm.size)
        work = comm.reduce_scatter(rows, out=in_memory_order(y), wait=wait)
        return _finish(work, wait, y)
    rows = numpy.stack([_padded(p, {at: max(parts)}) for p in split(whole, at, parts)])
    padded = _core.empty(rows.shape[1:], x.dtype)
    work = comm.reduce_scatter(rows, out=padded, wait=wait)
    return _finish(work, wait, y, [(in_memory_order(y), padded)])


def all_reduce(comm: Any, x: numpy.ndarray, wait: bool) -> Finish:
    """The sum of all ranks' ``x``."""
    y = empty_image(x.shape, x.dtype)
    work = comm.all_reduce(in_memory_order(x), out=in_memory_order(y), wait=wait)
    return _finish(work, wait, y)


def exchange(
    comm: Any,
    x: numpy.ndarray,
    axes: tuple[int, int],
    parts: tuple[Sequence[int], Sequence[int]],
    wait: bool,
) -> Finish:
    """From parts along one axis to parts along another."""
    source, target = axes
    from_parts, to_parts = parts
    shape = _with_extent(x.shape, source, sum(from_parts))
    y = empty_image(_with_extent(shape, target, to_parts[comm.rank]), x.dtype)
    own, result = in_memory_order(x), in_memory_order(y)
    source, target = _moved(source, x.ndim), _moved(target, x.ndim)
    if len({*from_parts}) == len({*to_parts}) == 1:
        places = _rows(result, source, comm.size)
        sent = _rows(own, target, comm.size)
        return _finish(comm.all_to_all(sent, out=places, wait=wait), wait, y)
    room = {source: max(from_parts), target: max(to_parts)}
    sent = numpy.stack([_padded(part, room) for part in split(own, target, to_parts)])
    rows = _core.empty(sent.shape, x.dtype)
    work = comm.all_to_all(sent, out=rows, wait=wait)
    return _finish(work, wait, y, zip(split(result, source, from_parts), rows))


def _padded(x: numpy.ndarray, extents: Mapping[int, int]) -> numpy.ndarray:
    """``x`` with zeros behind it along some axes, up to these extents."""
    behind = [(0, extents.get(i, n) - n) for i, n in enumerate(x.shape)]
    return numpy.pad(x, behind)


def _finish(
    work: Any,
    wait: bool,
    y: numpy.ndarray,
    padded: Iterable[tuple[numpy.ndarray, numpy.ndarray]] = (),
) -> Finish:
    """Waits for ``work``, unless that is done, fills places of ``y`` and returns it."""

    def finish() -> numpy.ndarray:
        if not wait:
            work.wait()
        for place, part in padded:
            place[...] = part[tuple(slice(n) for n in place.shape)]
        return y

    return finish


def split(x: Any, axis: int, parts: Sequence[int]) -> list[Any]:
    """Views of successive parts of an axis."""
    ends = numpy.cumsum([0, *parts]).tolist()
    ahead = (slice(None),) * axis
    return [x[(*ahead, slice(a, b))] for a, b in zip(ends, ends[1:])]


def empty_image(shape: Sequence[int], dtype: Any) -> numpy.ndarray:
    """Room for an image with its channels last in memory, as convolutions have them."""
    if len(shape) < 4:
        return _core.empty(tuple(shape), numpy.dtype(dtype))
    memory = _core.empty((shape[0], *shape[2:], shape[1]), numpy.dtype(dtype))
    return memory.transpose(0, -1, *range(1, len(shape) - 1))


def channels_last(x: numpy.ndarray) -> numpy.ndarray:
    """The same image with its channels last in memory: itself, or a copy."""
    memory = in_memory_order(x)
    if memory.flags.c_contiguous:
        return x
    axes = (0, *range(2, x.ndim), 1)
    # The core copies across the order of memory ten times as fast as NumPy.
    run = ops.reshape(ops.transpose(x, axes), (-1,)).array
    return run.reshape(memory.shape).transpose(0, -1, *range(1, x.ndim - 1))


def in_memory_order(x: numpy.ndarray) -> numpy.ndarray:
    """The view of an image that is contiguous where its channels are last.

    It is a matter of the number of axes only: all ranks have to send in one order.
    """
    return x if x.ndim < 4 else x.transpose(0, *range(2, x.ndim), 1)


def _moved(axis: int, ndim: int) -> int:
    """Where ``in_memory_order`` has an axis."""
    if ndim < 4 or axis == 0:
        return axis
    return ndim - 1 if axis == 1 else axis - 1


def _rows(x: numpy.ndarray, axis: int, size: int) -> numpy.ndarray:
    """A view whose first axis are the equal parts of another one."""
    shape = (*x.shape[:axis], size, x.shape[axis] // size, *x.shape[axis + 1 :])
    return x.reshape(shape).transpose(axis, *range(axis), *range(axis + 1, len(shape)))


def _with_extent(shape: Sequence[int], axis: int, extent: int) -> tuple[int, ...]:
    return (*shape[:axis], extent, *shape[axis + 1 :])
