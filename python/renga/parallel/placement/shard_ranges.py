"""Which range of an axis each rank has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def shard_ranges(extent: int, size: int, unit: int = 1) -> tuple[range, ...]:
    """The contiguous range of an axis that each of ``size`` ranks has, in rank order.

    As in ``numpy.array_split``, the first ranges are one unit longer where
    ``extent / unit`` does not divide evenly, and the last ones are empty where there
    are fewer units than ranks.

    Args:
        extent: of the axis, a multiple of ``unit``.
        unit: how many elements stay on one rank, such as the pixels of a channel.

    Raises:
        ValueError: the extent is not a multiple of the unit, or there is no rank.
    """
    if size < 1 or extent < 0 or unit < 1 or extent % unit != 0:
        raise ValueError(
            f"shard_ranges: expected a multiple of {unit} to shard over one rank or "
            f"more, got {extent} over {size}"
        )
    least, more = divmod(extent // unit, size)
    starts = [unit * (rank * least + min(rank, more)) for rank in range(size + 1)]
    return tuple(range(a, b) for a, b in zip(starts, starts[1:]))


def shard_range(extent: int, size: int, rank: int) -> range:
    """The range of an axis that one rank has."""
    return shard_ranges(extent, size)[rank]


def as_slice(elements: range) -> slice:
    """The slice of an axis with these elements."""
    return slice(elements.start, elements.stop)


def sizes_of(ranges: Iterable[Sequence[int]]) -> list[int]:
    """The number of elements of each range."""
    return [len(elements) for elements in ranges]


def describe_range(own: range, extent: int, rank: int, size: int, what: str) -> str:
    """A range in an error message: ``channels 4 to 7 of 10 (rank 1 of 3)``."""
    span = f"{own.start} to {own.stop - 1}" if len(own) else "none"
    return f"{what} {span} of {extent} (rank {rank} of {size})"
