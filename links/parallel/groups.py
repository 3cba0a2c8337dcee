"""Groups of ranks that share out data, channels and images between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Groups(NamedTuple):
    """The communicators a rank is in, one for each way of sharing work out."""

    data: Any  # ranks with the same part of the model and different samples
    channel: Any  # ranks with the same samples and different channels
    spatial: Any  # ranks with the same samples and different parts of the images


def create_groups(
    comm: Any, data: int | None = None, channel: int = 1, spatial: int = 1
) -> Groups:
    """Splits a communicator into a grid of data × spatial × channel ranks.

    Ranks of one channel group follow each other, since they talk the most, then those
    of a spatial group. Every rank has to call it.

    Args:
        data: how many data-parallel groups; all that the others leave if None.

    Raises:
        ValueError: the numbers do not multiply to the number of ranks.
    """
    rest = channel * spatial
    if data is None and rest > 0:
        data = comm.size // rest
    if min(data or 0, channel, spatial) < 1 or (data or 0) * rest != comm.size:
        raise ValueError(
            f"create_groups: expected {comm.size} ranks, got {data} for data × "
            f"{spatial} spatial × {channel} for channels"
        )
    return Groups(
        split_by(comm, lambda rank: rank % rest),
        split_by(comm, lambda rank: rank // channel),
        split_by(comm, lambda rank: rank // rest * channel + rank % channel),
    )


def split_by(comm: Any, color_of: Callable[[int], int]) -> Any:
    """The group of the ranks that have this one's color, in their order."""
    if hasattr(comm, "split_by"):  # where the others cannot be asked
        return comm.split_by(color_of)
    return comm.split(color_of(comm.rank), comm.rank)
