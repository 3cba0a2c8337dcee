"""A model of a cluster's network."""

from __future__ import annotations

import dataclasses
import math

from renga import _communicators


@dataclasses.dataclass(frozen=True)
class Machine:
    """A message takes ``latency + bytes / bandwidth`` seconds.

    ``renga doctor`` measures these numbers. Those with ``node_`` are for
    ranks of one node, the others for ranks of different nodes. A rank sends one
    message at a time and receives one at a time.

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

    def check_ranks(self, ranks: int) -> None:
        """Raises ValueError if so many ranks do not fill the nodes."""
        if ranks > self.intra_size and ranks % self.intra_size:
            raise ValueError(
                f"simulated: expected nodes of {self.intra_size} ranks to share "
                f"{ranks} ranks evenly"
            )

    def message(self, size: int, same_node: bool) -> float:
        """The seconds that a message of ``size`` bytes takes."""
        if same_node:
            return self.node_latency + size / self.node_bandwidth
        return self.latency + size / self.bandwidth

    def all_reduce(self, ranks: int, size: int, is_16_bit: bool = False) -> float:
        """The seconds for ``size`` bytes, reduced within nodes, then between them."""
        width = min(self.intra_size, ranks)
        within = self._fastest(width, size, is_16_bit, same_node=True)
        partition = math.ceil(size / width)
        if width > 1 and is_16_bit:  # sums within a node have 32 bits
            partition, is_16_bit = 2 * partition, False
        nodes = ranks // width
        return within + self._fastest(nodes, partition, is_16_bit, same_node=False)

    def _fastest(
        self, ranks: int, size: int, is_16_bit: bool, same_node: bool
    ) -> float:
        latency = self.message(0, same_node)
        seconds_per_byte = 1 / (self.node_bandwidth if same_node else self.bandwidth)
        seconds: dict[str, float] = _communicators.all_reduce_seconds(
            ranks, size, is_16_bit, latency, seconds_per_byte
        )
        return min(seconds.values())

    def all_to_all(self, ranks: int, size: int) -> float:
        """The seconds for a message of ``size`` bytes to and from each other rank."""
        neighbours = min(self.intra_size, ranks) - 1
        others = ranks - 1 - neighbours
        return neighbours * self.message(size, True) + others * self.message(
            size, False
        )

    def broadcast(self, ranks: int, size: int) -> float:
        """The seconds for ``size`` bytes from one rank to all others along a tree."""
        width = min(self.intra_size, ranks)
        within = math.ceil(math.log2(width)) * self.message(size, True)
        between = math.ceil(math.log2(ranks / width)) * self.message(size, False)
        return within + between
