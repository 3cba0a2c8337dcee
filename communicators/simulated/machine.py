"""A model of a cluster's network."""

from __future__ import annotations

import dataclasses
import math

from renga import _communicators
from renga.communicators.simulated import levels as networks
from renga.communicators.simulated.levels import Level
from renga.utils.argument import check_count, check_number


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
        adapters: of a node, which its ranks share; 0 is one for each rank.
        leaf_nodes: nodes under one switch; 0 is all.
        switches: the levels above these switches, from the lowest one. Their ``size``
            of the last one does not count: it joins what there is.
        algorithms: of all-reduces, from
            :data:`~renga.communicators.simulated.levels.ALL_REDUCES`; the fastest is
            taken. () are those of the communicators of this library.
        node_groups: ``node_bandwidth`` in all-reduces of so many ranks of a node, as
            pairs of their number and bytes per second: in a cube mesh of links, fewer
            ranks have fewer links among them. It is for ``algorithms`` only.
        adapter_ranks: of a node that are beside an adapter; 0 is all. A group of ranks
            that has one of them sends by it, others by way of the processor.
        detour: the part of ``bandwidth`` that messages by way of the processor reach.
            Virtual ranks send at all of it.

    Raises:
        TypeError: what should be a number is none.
        ValueError: a number is too low, an algorithm is unknown, or there are switches
            above leaves of an unknown size.
    """

    intra_size: int = 1
    latency: float = 20e-6
    bandwidth: float = 1.25e9
    node_latency: float = 1e-6
    node_bandwidth: float = 10e9
    adapters: int = 0
    leaf_nodes: int = 0
    switches: tuple[Level, ...] = ()
    algorithms: tuple[str, ...] = ()
    node_groups: tuple[tuple[int, float], ...] = ()
    adapter_ranks: int = 0
    detour: float = 1.0

    def __post_init__(self) -> None:
        check_count("Machine: intra_size", self.intra_size)
        check_count("Machine: adapters", self.adapters, 0)
        check_count("Machine: adapter_ranks", self.adapter_ranks, 0)
        check_number("Machine: detour", self.detour, 0, is_above=True)
        check_count("Machine: leaf_nodes", self.leaf_nodes, 0)
        for name in ("", "node_"):
            bandwidth = getattr(self, f"{name}bandwidth")
            check_number(f"Machine: {name}bandwidth", bandwidth, 0, is_above=True)
            check_number(f"Machine: {name}latency", getattr(self, f"{name}latency"), 0)
        for level in self.switches:
            if len(level) not in (3, 4):
                raise ValueError(
                    f"Machine: expected switches of a size, a bandwidth, a latency and "
                    f"links, got {level}"
                )
        switches = tuple(Level(*level) for level in self.switches)
        for level in switches:
            for name in ("size", "bandwidth", "links"):
                value = getattr(level, name)
                check_number(f"Machine: {name} of a switch", value, 0, is_above=True)
            check_number("Machine: latency of a switch", level.latency, 0)
        object.__setattr__(self, "switches", switches)
        unknown = set(self.algorithms) - set(networks.ALL_REDUCES)
        if unknown:
            raise ValueError(
                f"Machine: expected algorithms of {', '.join(networks.ALL_REDUCES)}, "
                f"got {', '.join(sorted(map(str, unknown)))}"
            )
        object.__setattr__(self, "algorithms", tuple(self.algorithms))
        for group in self.node_groups:
            if len(group) != 2:
                raise ValueError(
                    f"Machine: expected node_groups of ranks and bytes per second, got "
                    f"{group}"
                )
            for value in group:
                check_number("Machine: node_groups", value, 0, is_above=True)
        groups = tuple((int(n), float(bandwidth)) for n, bandwidth in self.node_groups)
        object.__setattr__(self, "node_groups", groups)
        if switches and not self.leaf_nodes:
            raise ValueError(
                "Machine: expected leaf_nodes above 0, as switches are above leaves"
            )

    def levels(self, ranks: int) -> list[Level]:
        """The network of so many ranks, level by level."""
        width = min(self.intra_size, ranks)
        sizes = [width, self.leaf_nodes or ranks, *(s.size for s in self.switches)]
        links = [
            Level(1, self.node_bandwidth, self.node_latency),
            Level(1, self.bandwidth, self.latency, self.adapters or width),
            *self.switches,
        ]
        found, left = [], ranks
        for i, (size, own) in enumerate(zip(sizes, links)):
            size = left if i == len(links) - 1 else min(size, left)
            found.append(own._replace(size=size))
            left = math.ceil(left / size)
        return found

    @property
    def share(self) -> float:
        """The part of ``bandwidth`` that a rank has if all send to other leaves."""
        below, size = self.intra_size, self.leaf_nodes
        share = min(1.0, (self.adapters or below) / below)
        for level in self.switches:
            below *= size
            share = min(share, level.capacity / below / self.bandwidth)
            size = level.size
        return share * self._reached(self.intra_size)

    def _reached(self, groups: int) -> float:
        """The part of ``bandwidth`` if so many groups of a node send in turn."""
        beside = min(1.0, (self.adapter_ranks or groups) / groups)
        return 1 / (beside + (1 - beside) / self.detour)

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

    def all_reduce(
        self, ranks: int, size: int, is_16_bit: bool = False, stride: int = 1
    ) -> float:
        """The seconds for ``size`` bytes; ours is within nodes, then between them.

        Args:
            stride: the group is every so many ranks, and all such groups do the same.
        """
        if self.algorithms or stride > 1:
            own = networks.group(self.levels(ranks * stride), ranks, stride)
            bandwidth = dict(self.node_groups).get(own[0].size, self.node_bandwidth)
            own[0] = own[0]._replace(bandwidth=bandwidth)
            if len(own) > 1:
                reached = self._reached(min(stride, self.intra_size))
                own[1] = own[1]._replace(bandwidth=reached * own[1].bandwidth)
            names = self.algorithms or ("tree", "two-level")
            return networks.all_reduce(own, size, names)[0]
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
        bandwidth = self.node_bandwidth if same_node else self.bandwidth * self.share
        seconds_per_byte = 1 / bandwidth
        seconds: dict[str, float] = _communicators.all_reduce_seconds(
            ranks, size, is_16_bit, latency, seconds_per_byte
        )
        return min(seconds.values())

    def all_to_all(self, ranks: int, size: int) -> float:
        """The seconds for a message of ``size`` bytes to and from each other rank."""
        neighbours = min(self.intra_size, ranks) - 1
        others = ranks - 1 - neighbours
        outside = others * (self.latency + size / (self.bandwidth * self.share))
        return neighbours * self.message(size, True) + outside

    def broadcast(self, ranks: int, size: int) -> float:
        """The seconds for ``size`` bytes from one rank to all others along a tree."""
        width = min(self.intra_size, ranks)
        within = math.ceil(math.log2(width)) * self.message(size, True)
        between = math.ceil(math.log2(ranks / width)) * self.message(size, False)
        return within + between
