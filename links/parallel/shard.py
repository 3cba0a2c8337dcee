"""How an extent is shared out over ranks, evenly or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def shares(extent: int, size: int, unit: int = 1) -> tuple[range, ...]:
    """The part of ``range(extent)`` that each of ``size`` ranks has, in rank order.

    Parts follow each other; the first ones have a unit more where ``extent / unit``
    does not divide evenly, and the last ones are empty where there are fewer units
    than ranks, as in ``numpy.array_split``.

    Args:
        extent: a multiple of ``unit``.
        unit: what is not torn apart, such as the pixels of one channel.

    Raises:
        ValueError: the extent is not a multiple of the unit, or there is no rank.
    """
    if size < 1 or extent < 0 or unit < 1 or extent % unit != 0:
        raise ValueError(
            f"shares: expected a multiple of {unit} to share out over one rank or "
            f"more, got {extent} over {size}"
        )
    least, more = divmod(extent // unit, size)
    starts = [unit * (rank * least + min(rank, more)) for rank in range(size + 1)]
    return tuple(range(a, b) for a, b in zip(starts, starts[1:]))


def share(extent: int, size: int, rank: int, unit: int = 1) -> range:
    """The part of ``range(extent)`` that one rank has."""
    return shares(extent, size, unit)[rank]


def as_slice(part: range) -> slice:
    """What takes ``part`` of an axis."""
    return slice(part.start, part.stop)


def describe(part: range, whole: int, rank: int, size: int, what: str) -> str:
    """A shard in an error message: ``channels 4 to 7 of 10 (rank 1 of 3)``."""
    span = f"{part.start} to {part.stop - 1}" if len(part) else "none"
    return f"{what} {span} of {whole} (rank {rank} of {size})"


def lengths(parts: Iterable[Sequence[int]]) -> list[int]:
    """How much each rank has."""
    return [len(part) for part in parts]
