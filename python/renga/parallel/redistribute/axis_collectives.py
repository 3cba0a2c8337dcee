"""Collectives along any axis of an array, whatever the sizes of the ranks' shards.

Each starts at once and returns a function that waits, if the collective goes on in the
background, and returns the result. Images are sent in their memory order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy

from renga.communicators import Communicator
from renga.core.types import Array
from renga.parallel.placement.memory_format import (
    axis_in_memory_order,
    empty_beside,
    empty_image,
    in_memory_order,
)

Wait = Callable[[], numpy.ndarray]


def all_gather(
    comm: Communicator, x: numpy.ndarray, axis: int, sizes: Sequence[int], wait: bool
) -> Wait:
    """All ranks' shards of an axis, concatenated.

    Args:
        sizes: of the ranks' shards along the axis.
        wait: whether the collective is done on return.
    """
    y = empty_image(_with_extent(x.shape, axis, sum(sizes)), x)
    sent, at = in_memory_order(x), axis_in_memory_order(axis, x.ndim)
    if len(set(sizes)) == 1:
        rows = _rows(in_memory_order(y), at, comm.size)
        return _wait_and_copy(comm.all_gather(sent, out=rows, wait=wait), wait, y)
    padded = _padded(sent, {at: max(sizes)})
    rows = empty_beside(x, (comm.size, *padded.shape))
    work = comm.all_gather(padded, out=rows, wait=wait)
    shards = split_axis(in_memory_order(y), at, sizes)
    return _wait_and_copy(work, wait, y, zip(shards, rows))


def reduce_scatter(
    comm: Communicator, x: numpy.ndarray, axis: int, sizes: Sequence[int], wait: bool
) -> Wait:
    """This rank's shard, along an axis, of the sum of all ranks' ``x``."""
    y = empty_image(_with_extent(x.shape, axis, sizes[comm.rank]), x)
    sent, at = in_memory_order(x), axis_in_memory_order(axis, x.ndim)
    if len(set(sizes)) == 1:
        rows = _rows(sent, at, comm.size)
        work = comm.reduce_scatter(rows, out=in_memory_order(y), wait=wait)
        return _wait_and_copy(work, wait, y)
    shards = split_axis(sent, at, sizes)
    rows = numpy.stack([_padded(shard, {at: max(sizes)}) for shard in shards])
    padded = empty_beside(x, rows.shape[1:])
    work = comm.reduce_scatter(rows, out=padded, wait=wait)
    return _wait_and_copy(work, wait, y, [(in_memory_order(y), padded)])


def all_reduce(comm: Communicator, x: numpy.ndarray, wait: bool) -> Wait:
    """The sum of all ranks' ``x``."""
    y = empty_image(x.shape, x)
    work = comm.all_reduce(in_memory_order(x), out=in_memory_order(y), wait=wait)
    return _wait_and_copy(work, wait, y)


def all_to_all(
    comm: Communicator,
    x: numpy.ndarray,
    axes: tuple[int, int],
    sizes: tuple[Sequence[int], Sequence[int]],
    wait: bool,
) -> Wait:
    """From shards along the first axis to shards along the second.

    Args:
        axes: the axis that is sharded before, and that which is sharded after.
        sizes: of the ranks' shards along each of them.
    """
    source, target = axes
    source_sizes, target_sizes = sizes
    shape = _with_extent(x.shape, source, sum(source_sizes))
    y = empty_image(_with_extent(shape, target, target_sizes[comm.rank]), x)
    sent, received = in_memory_order(x), in_memory_order(y)
    source = axis_in_memory_order(source, x.ndim)
    target = axis_in_memory_order(target, x.ndim)
    if len({*source_sizes}) == len({*target_sizes}) == 1:
        rows = _rows(received, source, comm.size)
        work = comm.all_to_all(_rows(sent, target, comm.size), out=rows, wait=wait)
        return _wait_and_copy(work, wait, y)
    extents = {source: max(source_sizes), target: max(target_sizes)}
    shards = split_axis(sent, target, target_sizes)
    padded = numpy.stack([_padded(shard, extents) for shard in shards])
    rows = empty_beside(x, padded.shape)
    work = comm.all_to_all(padded, out=rows, wait=wait)
    shards = split_axis(received, source, source_sizes)
    return _wait_and_copy(work, wait, y, zip(shards, rows))


def split_axis(x: Array, axis: int, sizes: Sequence[int]) -> list[Array]:
    """Views of successive shards of an axis."""
    ends = numpy.cumsum([0, *sizes]).tolist()
    leading = (slice(None),) * axis
    return [x[(*leading, slice(a, b))] for a, b in zip(ends, ends[1:])]


def _padded(x: numpy.ndarray, extents: Mapping[int, int]) -> numpy.ndarray:
    """``x`` with trailing zeros along some axes, up to these extents."""
    widths = [(0, extents.get(i, n) - n) for i, n in enumerate(x.shape)]
    return numpy.pad(x, widths)


def _wait_and_copy(
    work: Any,
    is_done: bool,
    y: numpy.ndarray,
    padded: Iterable[tuple[numpy.ndarray, numpy.ndarray]] = (),
) -> Wait:
    """What waits for ``work``, copies (destination, padded array) pairs, returns y."""

    def wait() -> numpy.ndarray:
        if not is_done:
            work.wait()
        for destination, array in padded:
            destination[...] = array[tuple(slice(n) for n in destination.shape)]
        return y

    return wait


def _rows(x: numpy.ndarray, axis: int, size: int) -> numpy.ndarray:
    """A view whose first axis counts the equal shards of another axis."""
    shape = (*x.shape[:axis], size, x.shape[axis] // size, *x.shape[axis + 1 :])
    return x.reshape(shape).transpose(axis, *range(axis), *range(axis + 1, len(shape)))


def _with_extent(shape: Sequence[int], axis: int, extent: int) -> tuple[int, ...]:
    return (*shape[:axis], extent, *shape[axis + 1 :])
