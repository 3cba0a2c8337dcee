"""The communicator of a virtual rank."""

from __future__ import annotations

from renga.communicators.simulated.simulated_communicator import OnMachine
from renga.communicators.simulated.virtual.virtual_native import VirtualNative


class VirtualCommunicator(OnMachine):
    """Communicates with the other ranks of :func:`run`, in virtual time.

    The groups that ``split`` makes have the clock of their rank.
    """

    native: VirtualNative

    @property
    def clock(self) -> float:
        """The virtual time of this rank, in seconds."""
        return self.native.thread.now

    def compute(self, seconds: float) -> None:
        """Adds the time of a computation to the clock.

        Raises:
            ValueError: if ``seconds`` is negative or not finite.
        """
        self.native.thread.compute(seconds)

    def advance(self, task: object) -> None:
        """Adds ``seconds_of(rank, task)`` of :func:`run` to the clock.

        Where computation is measured, it has been counted already: nothing is added.
        """
        self.native.thread.advance(task)
