"""Which ranks serve, which compute and push together, and on what terms."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from renga.communicators import Communicator
from renga.communicators.simulated import VirtualCommunicator


class Roles(NamedTuple):
    """The ranks that serve, those that compute, and how many of these are a leaf."""

    hosting: range
    workers: range
    leaf: int

    def leaf_of(self, rank: int) -> int | None:
        """The number of a rank's leaf; None if it only serves."""
        return (
            (rank - self.workers.start) // self.leaf if rank in self.workers else None
        )


class Terms(NamedTuple):
    """How the ranks that serve shards and those that push deal with each other.

    Attributes:
        hosts: the rank that serves each shard, or keeps its log.
        workers: the ranks that push.
        staleness: how many clocks one may be ahead; ``math.inf`` for no bound.
        staleness_aware: whether learning rates are divided by the staleness.
        timeout: a worker that is not heard of for so many seconds is lost.
    """

    hosts: list[int]
    workers: list[int]
    staleness: float
    staleness_aware: bool
    timeout: float

    def shards_of(self, rank: int) -> list[int]:
        """The shards that a rank serves."""
        return [shard for shard, host in enumerate(self.hosts) if host == rank]


def roles_in(
    comm: Communicator, servers: int | None, leaf: int, rows: Collection[str]
) -> Roles:
    """The roles of the ranks of a communicator.

    Args:
        comm: the ranks.
        servers: how many of them only serve, the first ones; None if all do both.
        leaf: how many workers push as one, or all if there are fewer.
        rows: the names of parameters that are sent by rows.

    Raises:
        ValueError: if they do not fit the number of ranks or each other.
    """
    size = comm.size
    if servers is None and isinstance(comm, VirtualCommunicator):
        raise ValueError(
            "create_server_optimizer: expected servers to be a number of ranks: a "
            "virtual rank has one thread"
        )
    if servers is not None and not 1 <= servers < size:
        raise ValueError(
            "create_server_optimizer: expected 1 server or more, and a rank that "
            f"computes, got {servers} of {size} ranks"
        )
    hosting = range(size) if servers is None else range(servers)
    workers = range(size) if servers is None else range(servers, size)
    leaf = min(leaf, len(workers))
    if len(workers) % leaf:
        raise ValueError(
            "create_server_optimizer: expected leaves of equally many workers, got "
            f"{leaf} of {len(workers)} in each"
        )
    if leaf > 1 and rows:
        raise ValueError(
            "create_server_optimizer: expected no rows of parameters with leaves, "
            f"which share all of them, got rows of {', '.join(rows)}"
        )
    return Roles(hosting, workers, leaf)
