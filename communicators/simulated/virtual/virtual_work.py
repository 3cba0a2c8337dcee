"""Communication in flight of a virtual rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from renga.communicators.simulated.virtual.events import Event
from renga.communicators.simulated.virtual.messages import Receive

if TYPE_CHECKING:
    from renga.communicators.simulated.virtual.virtual_native import (
        VirtualNative,
    )


class VirtualWork:
    """The interface of the compiled Work, for an event of a virtual rank."""

    def __init__(self, native: VirtualNative, event: Event) -> None:
        self._native = native
        self._thread = native.thread
        self._event = event

    def test(self) -> bool:
        with self._thread:
            return self._thread.test(self._event)

    def wait(self, timeout_seconds: float) -> None:
        with self._thread:
            begin = self._thread.clock
            try:
                done = self._thread.wait_for(self._event, timeout_seconds or math.inf)
            finally:
                self._native.counts.add_wait(self._thread.clock - begin)
        if not done:
            raise TimeoutError(
                f"{self._event.describe()}: not complete after {timeout_seconds:g} s "
                f"on rank {self._native.rank}"
            )

    def __del__(self) -> None:
        # A message that arrives later is for another receive.
        if isinstance(self._event, Receive):
            self._event.is_cancelled = True
