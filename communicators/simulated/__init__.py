"""Ranks that are simulated: counts and predicted times.

:func:`connect` makes one rank of many that do not exist: every other rank is assumed to
hold the same arrays and to make the same calls. So a sum is this rank's array times the
number of ranks, and a rank receives what it has sent itself. :func:`run` runs all
ranks, and they receive what the others send.
"""

from __future__ import annotations

from typing import Any

from renga.communicators.simulated.machine import Machine
from renga.communicators.simulated.simulated_communicator import SimulatedCommunicator
from renga.communicators.simulated.virtual import (
    Deadlock,
    Outcome,
    VirtualCommunicator,
    run,
)
from renga.communicators.transport.traffic import Traffic

__all__ = [
    "Deadlock",
    "Machine",
    "Outcome",
    "SimulatedCommunicator",
    "Traffic",
    "VirtualCommunicator",
    "connect",
    "run",
]


def connect(size: int = 2, rank: int = 0, **machine: Any) -> SimulatedCommunicator:
    """Rank ``rank`` of ``size`` on a machine with the parameters of :class:`Machine`.

    Raises:
        ValueError: if there is no such rank, or the ranks do not fill the nodes.
        TypeError: if a machine has no such parameter.
    """
    return SimulatedCommunicator(rank, size, Machine(**machine))
