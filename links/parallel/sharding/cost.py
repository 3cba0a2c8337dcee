"""What a step of a link costs, for the cost models of parallel links."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from renga.communicators import Communicator


class Rates(NamedTuple):
    """The speed of a network and of a rank."""

    alpha: float = 2e-5  # seconds for a message
    beta: float = 2.5e-10  # seconds for a byte
    flop: float = 1e-11  # seconds for a floating-point operation


class Cost(NamedTuple):
    """Of one step, forward and backward, on one rank."""

    communication: float  # seconds
    computation: float  # seconds
    bytes: float  # received

    @property
    def total(self) -> float:
        """Seconds of both, without overlap."""
        return self.communication + self.computation


def rates_of(comm: Communicator) -> Rates:
    """The rates of a simulated communicator's machine; default ones for others."""
    machine = getattr(comm, "machine", None)
    if machine is None:
        return Rates()
    if comm.intra_size == comm.size:
        return Rates(machine.node_latency, 1 / machine.node_bandwidth)
    return Rates(machine.latency, 1 / machine.bandwidth)
