"""What a step of a link costs, for the cost models of parallel links."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

from renga.communicators import Communicator, doctor
from renga.communicators.simulated import Machine


class Rates(NamedTuple):
    """The speed of a network and of a rank."""

    alpha: float = 2e-5  # seconds for a message
    beta: float = 2.5e-10  # seconds for a byte
    flop: float = 1e-11  # seconds for a floating-point operation

    def cost(self, messages: int, received: float) -> StepCost:
        """Of so many messages, in which a rank receives so many bytes."""
        return StepCost(messages * self.alpha + received * self.beta, 0, received)


class StepCost(NamedTuple):
    """Of one step, forward and backward, on one rank."""

    communication: float  # seconds
    computation: float  # seconds
    bytes: float  # received

    @property
    def total(self) -> float:
        """Seconds of both, without overlap."""
        return self.communication + self.computation


def rates_of(comm: Communicator) -> Rates:
    """The rates of a simulated communicator's machine; default ones for others.

    They are not measured: a program has the same layouts, and the same bits, in every
    run. A plan's are those of :func:`machine_of`, and a plan can be saved.
    """
    return Rates(*comm.network()) if comm.is_simulated else Rates()


def sum_of(costs: Iterable[StepCost]) -> StepCost:
    """Of several calls, one or more."""
    communication, computation, moved = (sum(parts) for parts in zip(*costs))
    return StepCost(communication, computation, moved)


_measured_machines: weakref.WeakKeyDictionary[Communicator, Machine]
_measured_machines = weakref.WeakKeyDictionary()


def machine_of(comm: Communicator) -> Machine:
    """The network of a communicator, which plans are given.

    A simulated one has a machine. Of others, messages from rank 0 to each other rank
    are measured at the first call, which every rank makes; the median counts.
    """
    machine: Machine | None = getattr(comm, "machine", None)
    if machine is None:
        machine = _measured_machines.get(comm)
    if machine is None:
        machine = _measured_machines[comm] = _measured(comm)
    return machine


def _measured(comm: Communicator) -> Machine:
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    nodes = comm.allgather_obj(comm.inter_rank)
    for rank, latency, bandwidth in doctor.links(comm):
        found[nodes[rank] == nodes[0]].append((latency, bandwidth))
    options: dict[str, Any] = {}
    for prefix, measured in (("node_", found[True]), ("", found[False])):
        if measured:
            latencies, bandwidths = (sorted(values) for values in zip(*measured))
            middle = len(measured) // 2
            options[f"{prefix}latency"] = latencies[middle]
            options[f"{prefix}bandwidth"] = bandwidths[middle]
    return Machine(intra_size=comm.intra_size, **options)
