"""A machine of many nodes, as far as communication feels it."""

from __future__ import annotations

import dataclasses
import math

from renga import _communicators


@dataclasses.dataclass(frozen=True)
class Machine:
    """How long messages take: ``latency + bytes / bandwidth``, in seconds.

    ``python -m renga.doctor`` measures these numbers on a real one. The ``node_``
    numbers hold between ranks of one node, the others between nodes; a rank carries
    one message at a time in each direction.

    Args:
        intra_size: ranks on each node.
        latency, node_latency: seconds.
        bandwidth, node_bandwidth: bytes per second of one rank.
    """

    intra_size: int = 1
    latency: float = 20e-6
    bandwidth: float = 1.25e9
    node_latency: float = 1e-6
    node_bandwidth: float = 10e9

    def message(self, size: int, same_node: bool) -> float:
        """One message of ``size`` bytes."""
        if same_node:
            return self.node_latency + size / self.node_bandwidth
        return self.latency + size / self.bandwidth

    def all_reduce(self, ranks: int, size: int, halves: bool = False) -> float:
        """A vector of ``size`` bytes, within nodes first, then between them."""
        width = min(self.intra_size, ranks)
        node = self._fastest(width, size, halves, same_node=True)
        share = math.ceil(size / width)
        if width > 1 and halves:  # sums within a node go on as 32 bits
            share, halves = 2 * share, False
        return node + self._fastest(ranks // width, share, halves, same_node=False)

    def _fastest(self, ranks: int, size: int, halves: bool, same_node: bool) -> float:
        latency = self.message(0, same_node)
        byte = 1 / (self.node_bandwidth if same_node else self.bandwidth)
        times = _communicators.all_reduce_seconds(ranks, size, halves, latency, byte)
        return min(times.values())

    def to_all(self, ranks: int, size: int) -> float:
        """A message of ``size`` bytes to each of the others, and one from each."""
        neighbours = min(self.intra_size, ranks) - 1
        others = ranks - 1 - neighbours
        return neighbours * self.message(size, True) + others * self.message(
            size, False
        )

    def tree(self, ranks: int, size: int) -> float:
        """The way of ``size`` bytes from one rank to all others."""
        width = min(self.intra_size, ranks)
        within = math.ceil(math.log2(width)) * self.message(size, True)
        between = math.ceil(math.log2(ranks / width)) * self.message(size, False)
        return within + between
