"""The communicator of a virtual rank."""

from __future__ import annotations

from typing import Any

from renga.communicators.native_communicator import NativeCommunicator
from renga.communicators.transport.simulated.machine import Machine
from renga.communicators.transport.traffic import Traffic


class VirtualCommunicator(NativeCommunicator):
    """Communicates with the other ranks of :func:`run`, in virtual time.

    The groups that ``split`` makes have the clock of their rank.
    """

    @property
    def machine(self) -> Machine:
        """The model of the network."""
        machine: Machine = self._native.machine
        return machine

    @property
    def traffic(self) -> Traffic:
        """Counts of this rank's communication so far."""
        traffic: Traffic = self._native.traffic
        return traffic.copy()

    @property
    def clock(self) -> float:
        """The virtual time of this rank, in seconds."""
        now: float = self._native.thread.now
        return now

    def compute(self, seconds: float) -> None:
        """Adds the time of a computation to the clock.

        Raises:
            ValueError: if ``seconds`` is negative or not finite.
        """
        self._native.thread.compute(seconds)

    def advance(self, task: Any) -> None:
        """Adds ``seconds_of(rank, task)`` of :func:`run` to the clock.

        Where computation is measured, it has been counted already: nothing is added.
        """
        self._native.thread.advance(task)
