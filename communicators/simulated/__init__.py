"""One rank of many that are not there: shapes, counts and predicted times.

Every other rank is taken to hold what this one holds and to do what it does. A sum
is thus this rank's array times the number of ranks, and what a rank receives is what
it has sent itself.
"""

from __future__ import annotations

from typing import Any

from renga.communicators.simulated.machine import Machine
from renga.communicators.simulated.simulated_communicator import SimulatedCommunicator
from renga.communicators.simulated.traffic import Traffic

__all__ = ["Machine", "SimulatedCommunicator", "Traffic", "connect"]


def connect(size: int = 2, rank: int = 0, **machine: Any) -> SimulatedCommunicator:
    """Rank ``rank`` of ``size`` on a machine; see :class:`Machine` for its numbers.

    Raises:
        ValueError: there is no such rank, or the nodes are not full.
        TypeError: a machine has no such number.
    """
    return SimulatedCommunicator(rank, size, Machine(**machine))
