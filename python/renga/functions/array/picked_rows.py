"""Elements that arrays of indices pick, as rows of a table."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy

from renga import _core


@dataclasses.dataclass(frozen=True)
class PickedRows:
    """``x[keys]`` as rows of a part of ``x`` whose indexed axes are joined.

    The part is a table ``(P, n, Q)``: of the axes before the indexed ones, of these,
    and of the axes after them.

    Attributes:
        part: The slices among the keys, which give the part.
        order: The axes of the part in the table's order.
        before, indexed, after: The extents of the part in that order.
        indices: The rows, as int64 of one axis.
        shape: The shape of ``x[keys]``.
    """

    part: tuple[slice, ...]
    order: tuple[int, ...]
    before: tuple[int, ...]
    indexed: tuple[int, ...]
    after: tuple[int, ...]
    indices: numpy.ndarray
    shape: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the table has all of ``x``."""
        return all(key == slice(None) for key in self.part)

    @property
    def is_view(self) -> bool:
        """Whether the table is all of a contiguous ``x``, in its order."""
        return self.is_whole and self.order == tuple(range(len(self.order)))

    @property
    def table(self) -> tuple[int, int, int]:
        """``(P, n, Q)``."""
        before, n, after = map(math.prod, (self.before, self.indexed, self.after))
        return before, n, after

    def gather(self, x: numpy.ndarray) -> numpy.ndarray | None:
        """``x[keys]``; None where the table would be a copy."""
        moved = x[self.part].transpose(self.order)
        is_known = x.dtype.isnative and x.dtype.kind in "fiub"
        if not (is_known and moved.flags.c_contiguous):
            return None
        table = moved.reshape(self.table)
        return _core.gather(table, self.indices).reshape(self.shape)

    def scatter_add(self, y: numpy.ndarray, shape: tuple[int, ...]) -> numpy.ndarray:
        """Zeros of ``shape``, to which ``y``, of the shape of ``x[keys]``, is added."""
        before, n, after = self.table
        rows = y.reshape(before, self.indices.size, after)
        table = _core.scatter_add(rows, self.indices, n)
        moved = table.reshape(*self.before, *self.indexed, *self.after)
        part = moved.transpose(numpy.argsort(self.order))
        if self.is_whole:
            return part
        x = numpy.zeros(shape, y.dtype)
        x[self.part] = part
        return x


def picked_rows(shape: tuple[int, ...], keys: tuple[object, ...]) -> PickedRows | None:
    """How the keys pick elements of an array; None where only NumPy's rules tell."""
    every = _one_per_axis(shape, keys)
    if every is None:
        return None
    part: list[slice] = []
    kept: list[tuple[int, ...]] = [(), ()]  # the axes before and after the indexed ones
    added: list[tuple[int, ...]] = [(), ()]  # their extents, and 1 for each new axis
    indexed: list[tuple[int, Any]] = []
    is_split = False  # other axes are between indexed ones: these are the first
    for key in every:
        axis = len(part)
        if key is None or isinstance(key, slice):
            extents = (1,)
            if key is not None:
                part.append(key)
                extents = (len(range(*key.indices(shape[axis]))),)
                kept[bool(indexed)] += (axis,)
            added[bool(indexed)] += extents
        else:
            is_split |= bool(added[1])
            indexed.append((axis, key))
            part.append(slice(None))
    if is_split:
        kept, added = [(), kept[0] + kept[1]], [(), added[0] + added[1]]
    try:
        indices = _joined([(shape[axis], key) for axis, key in indexed])
    except (IndexError, ValueError):
        return None  # NumPy raises its own error
    axes = tuple(axis for axis, _ in indexed)
    length = [len(range(*key.indices(n))) for key, n in zip(part, shape)]
    before, after = (tuple(length[axis] for axis in side) for side in kept)
    return PickedRows(
        part=tuple(part),
        order=kept[0] + axes + kept[1],
        before=before,
        indexed=tuple(shape[axis] for axis in axes),
        after=after,
        indices=indices.reshape(-1),
        shape=added[0] + indices.shape + added[1],
    )


def _one_per_axis(shape: tuple[int, ...], keys: tuple[Any, ...]) -> list[Any] | None:
    """Keys for all axes, and None for each new one: slices and arrays of integers."""
    given: list[Any] = [x if _is_basic(x) else numpy.asarray(x) for x in keys]
    rest = len(shape) - indexed_axes(keys)
    dots = [i for i, key in enumerate(given) if key is Ellipsis]
    # An ellipsis counts as an axis between indexed ones, even if it stands for none.
    if rest < 0 or len(dots) > 1 or (dots and rest == 0):
        return None
    at = dots[0] if dots else len(given)
    every = [*given[:at], *[slice(None)] * rest, *given[at + 1 :]]
    # As int64, large unsigned integers would be negative.
    are_integers = all(_is_basic(key) or key.dtype.char in "bhilqBHI" for key in every)
    return every if are_integers else None


def indexed_axes(keys: tuple[object, ...]) -> int:
    """How many axes have a key of their own."""
    return sum(key is not None and key is not Ellipsis for key in keys)


def _is_basic(key: Any) -> bool:
    return key is None or key is Ellipsis or isinstance(key, slice)


def _joined(indexed: list[tuple[int, numpy.ndarray]]) -> numpy.ndarray:
    """Indices of the joined axes, of indices of axes of n elements each.

    Raises:
        IndexError: there are no such elements.
        ValueError: the indices do not broadcast.
    """
    flat = numpy.zeros((), numpy.int64)
    for n, key in indexed:
        at = key.astype(numpy.int64)
        at += n * (at < 0)
        if len(indexed) > 1 and ((at < 0) | (at >= n)).any():
            raise IndexError(f"get_item: expected indices of {n} elements, got {key}")
        flat = at if len(indexed) == 1 else flat * n + at
    return flat
