"""Timing of nested functions."""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple


class Run(NamedTuple):
    """The time of a function's run, in nanoseconds of ``time.perf_counter_ns``."""

    start: int
    elapsed: int
    own: int  # without nested functions


class _Call:
    __slots__ = ("function", "inner", "start")

    def __init__(self, function: Any) -> None:
        self.function = function
        self.inner = 0
        self.start = time.perf_counter_ns()


class RunningFunctions(threading.local):
    """The functions that are running in each thread, outermost first."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def start(self, function: Any) -> None:
        """Starts timing a function."""
        self._calls.append(_Call(function))

    def stop(self, function: Any) -> Run | None:
        """Stops timing a function; None if it was not started."""
        now = time.perf_counter_ns()
        calls = self._calls
        depth = len(calls) - 1
        while depth >= 0 and calls[depth].function is not function:
            depth -= 1
        if depth < 0:
            return None
        call = calls[depth]
        del calls[depth:]  # inner functions have raised
        elapsed = now - call.start
        if calls:
            calls[-1].inner += elapsed
        return Run(call.start, elapsed, elapsed - call.inner)

    def clear(self) -> None:
        """Drops the functions of this thread that have raised."""
        self._calls.clear()
