"""The links of virtual ranks, and when they are in use."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from renga.communicators.simulated.machine import Machine


class VirtualNetwork:
    """Every rank sends one message at a time and receives one at a time.

    So do the adapters that the ranks of a node share, and the links of switches: a
    message takes the first of them that is free, from its start to its end.

    Args:
        machine: on whose nodes the ranks are, ``intra_size`` consecutive ones on each.
        ranks: their number.
    """

    def __init__(self, machine: Machine, ranks: int) -> None:
        self.machine = machine
        self._sends_until = [0.0] * ranks  # seconds
        self._receives_until = [0.0] * ranks
        # Each level of shared links, of nodes and of leaves, has the ranks of a child,
        # the number of its links, and their bandwidth and latency.
        self._links = [
            (machine.intra_size, machine.adapters, machine.bandwidth, machine.latency)
        ]
        below, size = machine.intra_size, machine.leaf_nodes
        for level in machine.switches:
            below *= size
            own = below, int(level.links), level.bandwidth, level.latency
            self._links.append(own)
            size = level.size
        self._until: dict[tuple[int, int, bool], list[float]] = {}

    def node_of(self, rank: int) -> int:
        """The number of the node that a rank is on."""
        return rank // self.machine.intra_size

    def message_seconds(self, source: int, destination: int, size: int) -> float:
        """The time of a message of ``size`` bytes; a rank's own takes none."""
        if source == destination:
            return 0.0
        same_node = self.node_of(source) == self.node_of(destination)
        seconds = self.machine.message(size, same_node)
        for below, _, bandwidth, latency in self._links[1:]:
            if source // below != destination // below:
                seconds = max(seconds, latency + size / bandwidth)
        return seconds

    def _shared(self, source: int, destination: int) -> list[tuple[list[float], int]]:
        """The links on the way of a message: of which child, and the first free one."""
        found = []
        for level, (below, links, *_) in enumerate(self._links):
            ends = source // below, destination // below
            if links and ends[0] != ends[1]:
                for child, sends in zip(ends, (True, False)):
                    own = self._until.setdefault((level, child, sends), [0.0] * links)
                    found.append((own, own.index(min(own))))
        return found

    def send(self, now: float, source: int, destination: int, size: int) -> float:
        """The time at which a message of ``size`` bytes that is sent now arrives."""
        if source == destination:
            return now
        links = self._sends_until[source], self._receives_until[destination]
        shared = self._shared(source, destination)
        start = max(now, *links, *(own[i] for own, i in shared))
        arrival = start + self.message_seconds(source, destination, size)
        for own, i in shared:
            own[i] = arrival
        self._sends_until[source] = self._receives_until[destination] = arrival
        return arrival

    def collective(self, now: float, ranks: Sequence[int], seconds: float) -> float:
        """The time at which a collective that all ``ranks`` have called ends.

        It begins when their links are free, and uses all of them.
        """
        if len(ranks) == 1:
            return now
        for rank in ranks:
            now = max(now, self._sends_until[rank], self._receives_until[rank])
        for rank in ranks:
            self._sends_until[rank] = self._receives_until[rank] = now + seconds
        return now + seconds

    def machine_of(self, ranks: Sequence[int]) -> Machine:
        """The machine as a group of ranks sees it.

        Nodes that hold different numbers of its ranks count as if each rank had one of
        its own: only then are collectives not made of one part within each node.
        """
        nodes = [self.node_of(rank) for rank in ranks]
        width = nodes.count(nodes[0])
        blocks = [node for node in dict.fromkeys(nodes) for _ in range(width)]
        width = width if nodes == blocks else 1
        return dataclasses.replace(self.machine, intra_size=width)
