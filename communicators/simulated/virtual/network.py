"""The links of virtual ranks, and when they are in use."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from renga.communicators.simulated.machine import Machine


class VirtualNetwork:
    """Every rank sends one message at a time and receives one at a time.

    Args:
        machine: on whose nodes the ranks are, ``intra_size`` consecutive ones on each.
        ranks: their number.
    """

    def __init__(self, machine: Machine, ranks: int) -> None:
        self.machine = machine
        self._sends_until = [0.0] * ranks  # seconds
        self._receives_until = [0.0] * ranks

    def node_of(self, rank: int) -> int:
        """The number of the node that a rank is on."""
        return rank // self.machine.intra_size

    def message_seconds(self, source: int, destination: int, size: int) -> float:
        """The time of a message of ``size`` bytes; a rank's own takes none."""
        if source == destination:
            return 0.0
        same_node = self.node_of(source) == self.node_of(destination)
        return self.machine.message(size, same_node)

    def send(self, now: float, source: int, destination: int, size: int) -> float:
        """The time at which a message of ``size`` bytes that is sent now arrives."""
        if source == destination:
            return now
        links = self._sends_until[source], self._receives_until[destination]
        arrival = max(now, *links) + self.message_seconds(source, destination, size)
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
