"""Machines to plan for: the real ranks of a communicator, or described ones."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import statistics
from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.communicators import Communicator
from renga.communicators.simulated import Machine
from renga.core.types import Path
from renga.parallel.plan.costs import Device
from renga.parallel.plan.json_file import read_json, write_json
from renga.parallel.plan.strategies.collective_times import (
    CollectiveTimes,
    interpolated,
)
from renga.parallel.redistribute.cost import machine_of
from renga.utils.argument import check_count, check_number

_LONG = 1 << 20  # bytes of a message that shows the bandwidth
_SIZE = re.compile(r"(\d+)\s*nodes?\s*[×x*]\s*(\d+)\s*ranks?", re.IGNORECASE)
_QUANTITY = re.compile(r"([\d.]+(?:e[+-]?\d+)?)\s*(\S+)", re.IGNORECASE)
# A part of a description gives one of these: a rate in bytes per second, or seconds.
_RATES = {"gbit/s": 1e9 / 8, "mbit/s": 1e6 / 8, "gb/s": 1e9, "mb/s": 1e6}
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Ranks and the network between them.

    Args:
        ranks: their number.
        machine: the network within a node and between nodes.
        overlaps: whether ranks compute while they communicate. The collectives of
            parallel links do not.
        comm: the communicator, if these are its ranks.
        collectives: their measured times.
        device: what a rank computes with.
        stragglers: the standard deviation of a rank's time for a step, over its mean.
        hours_between_failures: of a rank.
        price: of a rank for an hour.
    """

    ranks: int
    machine: Machine
    overlaps: bool = True
    comm: Communicator | None = dataclasses.field(
        default=None, compare=False, repr=False
    )
    collectives: CollectiveTimes | None = dataclasses.field(
        default=None, compare=False, repr=False
    )
    device: Device | None = None
    stragglers: float = 0.0
    hours_between_failures: float = math.inf
    price: float = 0.0

    def __post_init__(self) -> None:
        check_count("Cluster: ranks", self.ranks)
        check_number("Cluster: stragglers", self.stragglers, 0)
        check_number("Cluster: price", self.price, 0)
        hours = self.hours_between_failures
        check_number("Cluster: hours_between_failures", hours, 0, is_above=True)
        self.machine.check_ranks(self.ranks)

    @classmethod
    def describe(cls, text: str) -> Cluster:
        """A machine such as ``"4 nodes × 8 ranks, 10 Gbit/s, 5 µs"``.

        Bandwidth and latency are those between nodes. Two more of them, behind ``in
        nodes:``, are those within a node; by default :class:`Machine`'s.

        Args:
            text: units are Gbit/s, Mbit/s, GB/s and MB/s, and s, ms, µs (us) and ns.

        Raises:
            ValueError: the text is no description; it says which part.
        """
        between, colon, within = text.partition("in nodes:")
        first, *rest = [part.strip() for part in between.rstrip(" ,;").split(",")]
        size = _SIZE.fullmatch(first)
        if size is None:
            raise ValueError(
                f"Cluster: expected a description to begin with '4 nodes × 8 ranks', "
                f"got {first!r}"
            )
        nodes, intra_size = map(int, size.groups())
        if min(nodes, intra_size) < 1:
            raise ValueError(f"Cluster: expected a node and a rank, got {first!r}")
        options = _network(rest, "")
        if colon:
            options |= _network(within.split(","), "node_")
        return cls(nodes * intra_size, Machine(intra_size=intra_size, **options))

    @classmethod
    def of(cls, comm: Communicator) -> Cluster:
        """The ranks of a communicator and its measured network; every rank calls it.

        Latency and bandwidth are the median of messages from rank 0 to other ranks, of
        its node and of others. A simulated communicator has a machine already. The
        collectives of links are timed on real ranks.
        """
        times = None
        if comm.size > 1 and not comm.is_simulated:
            times = CollectiveTimes.measure(comm)
        return cls(comm.size, machine_of(comm), False, comm, times)

    @property
    def width(self) -> int:
        """The ranks of a node."""
        return min(self.machine.intra_size, self.ranks)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.ranks // self.width

    @property
    def without_ranks(self) -> Cluster:
        """The same machine, for files and messages."""
        return dataclasses.replace(self, comm=None, collectives=None)

    @property
    def link_machine(self) -> Machine:
        """The network as links use it: with the times of their collectives."""
        if self.collectives is None:
            return self.machine
        times = self.collectives.all_to_all
        latency = times[0][1] / (self.ranks - 1)
        long = interpolated(times, _LONG) / (self.ranks - 1)
        bandwidth = _LONG / max(long - latency, 1e-9)
        prefix = "" if self.ranks > self.machine.intra_size else "node_"
        options: dict[str, Any] = {
            f"{prefix}latency": latency,
            f"{prefix}bandwidth": bandwidth,
        }
        return dataclasses.replace(self.machine, **options)

    def all_to_all(self, machine: Machine, ranks: int, size: int) -> float:
        """The seconds for ``size`` bytes to and from each other rank of a group.

        Args:
            machine: that of the group, if no collectives were timed.
        """
        if self.collectives is None:
            return machine.all_to_all(ranks, size)
        share = (ranks - 1) / (self.ranks - 1)
        return share * interpolated(self.collectives.all_to_all, size)

    @property
    def topology(self) -> _core.planning.Topology:
        """The network for the simulator."""
        machine = self.machine
        return _core.planning.Topology(
            self.ranks,
            self.width,
            machine.latency,
            1 / (machine.bandwidth * machine.share),
            machine.node_latency,
            1 / machine.node_bandwidth,
            self.overlaps,
        )

    def all_reduce(self, devices: Sequence[int], size: int) -> float:
        """The seconds to add up ``size`` bytes over some ranks."""
        if len(devices) < 2:
            return 0.0
        by_node: dict[int, int] = {}
        for device in devices:
            node = device // self.machine.intra_size
            by_node[node] = by_node.get(node, 0) + 1
        width = max(by_node.values()) if len(set(by_node.values())) == 1 else 1
        return self.group_all_reduce(self.machine, len(devices), size, width)

    def group_all_reduce(
        self, machine: Machine, ranks: int, size: int, width: int | None = None
    ) -> float:
        """The seconds to add up ``size`` bytes over a group.

        Args:
            machine: that of the group, if no collectives were timed.
            width: how many of its ranks are on each node; by default as on the machine.
        """
        if self.collectives is not None:
            return interpolated(self.collectives.all_reduce, size)
        return _all_reduce(machine, width or machine.intra_size, ranks, size)

    @property
    def straggling(self) -> float:
        """How much longer than the mean the slowest of all ranks takes, on average.

        Source: Blom, Statistical estimates and transformed beta-variables, 1958.
        """
        if self.ranks == 1 or self.stragglers == 0:
            return 0.0
        part = (self.ranks - 0.375) / (self.ranks + 0.25)
        return self.stragglers * statistics.NormalDist().inv_cdf(part)

    def with_ranks(self, ranks: int) -> Cluster:
        """This machine with another number of ranks."""
        return dataclasses.replace(self.without_ranks, ranks=ranks)

    def to_json(self) -> dict[str, object]:
        """Fields for :meth:`from_json`; those with their defaults are left out."""
        found = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.compare and value != field.default:
                is_part = dataclasses.is_dataclass(value)
                found[field.name] = dataclasses.asdict(value) if is_part else value
        return found

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Cluster:
        """The cluster that ``to_json`` was called on."""
        own = {**fields, "machine": Machine(**fields["machine"])}
        if own.get("device") is not None:
            own["device"] = Device(**own["device"])
        return cls(**own)

    def save(self, path: Path) -> None:
        """Writes the description as JSON, atomically."""
        write_json(path, self.to_json())

    @classmethod
    def load(cls, path: Path) -> Cluster:
        """The cluster that a file describes: what ``save`` wrote, or by hand.

        Raises:
            ValueError: it is no description.
        """
        try:
            return cls.from_json(read_json("Cluster", path))
        except KeyError as error:
            raise ValueError(f"Cluster: expected {error} in {path}, got none") from None
        except TypeError as error:
            raise ValueError(
                f"Cluster: expected a description in {path}, got {error}"
            ) from error

    def __str__(self) -> str:
        machine, nodes, width = self.machine, self.nodes, self.width
        text = f"{nodes} {'nodes' if nodes > 1 else 'node'} × {width} ranks"
        if width < self.ranks:
            text += f", {_rate_and_time(machine.bandwidth, machine.latency)}"
        if width > 1:
            inside = _rate_and_time(machine.node_bandwidth, machine.node_latency)
            text += f", in nodes: {inside}"
        return text


@functools.lru_cache(1 << 16)  # a search asks for the same ones over and over
def _all_reduce(machine: Machine, width: int, ranks: int, size: int) -> float:
    machine = dataclasses.replace(machine, intra_size=width)
    return machine.all_reduce(ranks, size)


def _rate_and_time(bandwidth: float, latency: float) -> str:
    return f"{bandwidth * 8 / 1e9:.3g} Gbit/s, {latency * 1e6:.3g} µs"


def _network(parts: Sequence[str], prefix: str) -> dict[str, Any]:
    """``bandwidth`` and ``latency`` from parts of a description."""
    found: dict[str, Any] = {}
    for part in parts:
        match = _QUANTITY.fullmatch(part.strip())
        unit = match.group(2).lower() if match else ""
        name = "bandwidth" if unit in _RATES else "latency"
        if match is None or unit not in {**_RATES, **_TIMES} or prefix + name in found:
            raise ValueError(
                f"Cluster: expected one bandwidth (10 Gbit/s) and one latency (5 µs), "
                f"got {part.strip()!r}"
            )
        value = float(match.group(1)) * {**_RATES, **_TIMES}[unit]
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(
                f"Cluster: expected a number above 0, got {part.strip()!r}"
            )
        found[prefix + name] = value
    return found
