"""Timing of nested calls."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from renga.core.types import CalledFunction


class RunningCall:
    """A call from its begin to its end; on a CUDA device it is timed by events there.

    Attributes:
        begin, end: in nanoseconds of ``time.perf_counter_ns``, or events.
        inner: the calls within it.
    """

    __slots__ = ("begin", "device", "end", "function", "inner")

    def __init__(self, function: CalledFunction, device: int | None = None) -> None:
        self.function: CalledFunction | None = function
        self.device = device
        self.inner: list[RunningCall] = []
        self.begin = self.end = self._now()

    def stop(self) -> None:
        """Ends it."""
        self.function, self.end = None, self._now()

    @property
    def elapsed(self) -> float:
        """Nanoseconds; waits for a device."""
        if self.device is None:
            return self.end - self.begin
        return 1e9 * self.end.seconds_since(self.begin)

    @property
    def own(self) -> float:
        """Nanoseconds without those of the calls within it."""
        return self.elapsed - sum(call.elapsed for call in self.inner)

    def _now(self) -> Any:
        if self.device is None:
            return time.perf_counter_ns()
        event = sys.modules["renga._cuda"].Event(self.device)
        event.record()
        return event


class RunningCalls(threading.local):
    """The calls that are running in each thread, outermost first."""

    def __init__(self) -> None:
        self._calls: list[RunningCall] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """What is copied or pickled has no calls that are running."""
        return RunningCalls, ()

    def start(self, function: CalledFunction, device: int | None = None) -> None:
        """Starts timing a call."""
        self._calls.append(RunningCall(function, device))

    def stop(self, function: CalledFunction) -> RunningCall | None:
        """The innermost call of a function, which has ended; None if none was started.

        Calls within it that have not ended have raised.
        """
        calls = self._calls
        depth = len(calls) - 1
        while depth >= 0 and calls[depth].function is not function:
            depth -= 1
        if depth < 0:
            return None
        call = calls[depth]
        call.stop()
        del calls[depth:]
        if calls:
            calls[-1].inner.append(call)
        return call

    def clear(self) -> None:
        """Drops the calls of this thread that have raised."""
        self._calls.clear()
