"""Groups of ranks for data, channel and spatial parallelism at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from renga.communicators import Communicator


class Groups(NamedTuple):
    """The communicators of a rank, one for each kind of parallelism."""

    data: Any  # ranks with the same shard of the model and different samples
    channel: Any  # ranks with the same samples and different channels
    spatial: Any  # ranks with the same samples and different shards of the images


def create_groups(
    comm: Communicator, data: int | None = None, channel: int = 1, spatial: int = 1
) -> Groups:
    """Splits a communicator into a grid of data × spatial × channel ranks.

    Ranks of one channel group have consecutive numbers, since they communicate most;
    then come those of a spatial group. Every rank has to call it.

    Args:
        data: the size of the data groups; by default what the others leave.
        channel, spatial: the sizes of the channel and spatial groups.

    Raises:
        ValueError: the product of the sizes is not the number of ranks.
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


def split_by(comm: Communicator, color_of: Callable[[int], int]) -> Any:
    """The communicator of the ranks with this rank's color, in rank order."""
    if hasattr(comm, "split_by"):  # a simulated one, in which other ranks cannot answer
        return comm.split_by(color_of)
    return comm.split(color_of(comm.rank), comm.rank)
