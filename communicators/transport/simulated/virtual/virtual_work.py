"""Communication in flight of a virtual rank."""

from __future__ import annotations

import math

from renga.communicators.transport.simulated.virtual.events import Event
from renga.communicators.transport.simulated.virtual.messages import Receive
from renga.communicators.transport.simulated.virtual.virtual_thread import VirtualThread


class VirtualWork:
    """The interface of the compiled Work; ``rank`` is for errors."""

    def __init__(self, thread: VirtualThread, event: Event, rank: int) -> None:
        self._thread = thread
        self._event = event
        self._rank = rank

    def test(self) -> bool:
        with self._thread:
            return self._thread.test(self._event)

    def wait(self, timeout_seconds: float) -> None:
        with self._thread:
            begin = self._thread.clock
            try:
                done = self._thread.wait_for(self._event, timeout_seconds or math.inf)
            finally:
                self._thread.traffic.seconds += self._thread.clock - begin
        if not done:
            raise TimeoutError(
                f"{self._event.describe()}: not complete after {timeout_seconds:g} s "
                f"on rank {self._rank}"
            )

    def __del__(self) -> None:
        # A message that arrives later is for another receive.
        if isinstance(self._event, Receive):
            self._event.is_cancelled = True
