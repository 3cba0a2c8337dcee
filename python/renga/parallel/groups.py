"""Groups of ranks for several kinds of parallelism at the same time."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

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
        data=comm.split_by(lambda rank: rank % replica),
        channel=comm.split_by(lambda rank: rank // channel),
        spatial=comm.split_by(lambda rank: rank // image * channel + rank % channel),
        stage=comm.split_by(lambda rank: rank // replica * image + rank % image),
    )
    if stage > 1:
        groups.stage.replicas = comm.split_by(lambda rank: rank // image % stage)
    return groups
