"""Groups of ranks for several kinds of parallelism at the same time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from renga.communicators import Communicator


class Groups(NamedTuple):
    """The communicators of a rank, one for each kind of parallelism."""

    data: Any  # ranks with the same part of the model and different samples
    channel: Any  # ranks with the same samples and different channels
    spatial: Any  # ranks with the same samples and different shards of the images
    stage: Any  # ranks with the same samples and different layers: a pipeline


def create_groups(
    comm: Communicator,
    data: int | None = None,
    channel: int = 1,
    spatial: int = 1,
    stage: int = 1,
) -> Groups:
    """Splits a communicator into a grid of data × stage × spatial × channel ranks.

    Ranks of one channel group have consecutive numbers, since they communicate most;
    then come those of a spatial group, then those of a pipeline. Every rank has to call
    it.

    Args:
        data: the size of the data groups; by default what the others leave.
        channel, spatial, stage: the sizes of the other groups.

    Raises:
        ValueError: the product of the sizes is not the number of ranks.
    """
    image, replica = channel * spatial, channel * spatial * stage
    if data is None and replica > 0:
        data = comm.size // replica
    sizes = (data or 0, stage, spatial, channel)
    if min(sizes) < 1 or math.prod(sizes) != comm.size:
        raise ValueError(
            f"create_groups: expected {comm.size} ranks, got {data} for data × {stage} "
            f"stages × {spatial} spatial × {channel} for channels"
        )
    groups = Groups(
        data=split_by(comm, lambda rank: rank % replica),
        channel=split_by(comm, lambda rank: rank // channel),
        spatial=split_by(comm, lambda rank: rank // image * channel + rank % channel),
        stage=split_by(comm, lambda rank: rank // replica * image + rank % image),
    )
    if stage > 1:
        groups.stage.replicas = split_by(comm, lambda rank: rank // image % stage)
    return groups


def split_by(comm: Communicator, color_of: Callable[[int], int]) -> Any:
    """The communicator of the ranks with this rank's color, in rank order."""
    if hasattr(comm, "split_by"):  # a simulated one, in which other ranks cannot answer
        return comm.split_by(color_of)
    return comm.split(color_of(comm.rank), comm.rank)
