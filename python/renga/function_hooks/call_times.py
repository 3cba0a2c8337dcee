"""Times of calls, by name."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

from renga import _core
from renga.backends.cuda_device import number_of
from renga.core.types import CalledFunction
from renga.function_hooks.running import RunningCall, RunningCalls
from renga.utils.table import aligned

_MOST_UNREAD = 10_000


def _cuda_device(inputs: Iterable[Any]) -> int | None:
    """The number of the CUDA device of arrays or Variables, if they are on one."""
    for x in inputs:
        if isinstance(x, _core.Variable):
            if x.device_name.startswith("cuda"):
                return number_of(x)
        elif hasattr(x, "__cuda_array_interface__"):
            return int(x.device.id)
    return None


class CallTimes:
    """A record of calls, which may be nested.

    ``call_history`` lists each call's name and seconds, including nested calls. Calls
    on CUDA devices are timed there, and waited for when their times are read.
    """

    table = {"sec": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    _header = "FunctionName"

    def __init__(self) -> None:
        self._history: list[tuple[str, float]] = []
        self._total_time = 0.0
        self._running = RunningCalls()
        self._ended: list[tuple[str, RunningCall]] = []  # whose times were not read

    def _start(self, function: CalledFunction, inputs: Iterable[Any]) -> None:
        self._running.start(function, _cuda_device(inputs))

    def _stop(self, function: CalledFunction, name: str) -> None:
        call = self._running.stop(function)
        if call is not None:
            self._ended.append((name, call))
        if len(self._ended) >= _MOST_UNREAD:
            self._read_times()

    def _read_times(self) -> None:
        """Waits for the calls on devices."""
        ended, self._ended = self._ended, []
        for name, call in ended:
            self._history.append((name, call.elapsed / 1e9))
            self._total_time += call.own / 1e9
            call.inner.clear()

    @property
    def call_history(self) -> list[tuple[str, float]]:
        """The name and seconds of each call so far."""
        self._read_times()
        return self._history

    @call_history.setter
    def call_history(self, history: list[tuple[str, float]]) -> None:
        self._read_times()
        self._history = history

    def total_time(self) -> float:
        """The total seconds of all calls; nested ones count once."""
        self._read_times()
        return self._total_time

    def summary(self) -> dict[str, dict[str, float]]:
        """``elapsed_time`` in seconds and ``occurrence`` of each name."""
        found: dict[str, dict[str, Any]] = {}
        for name, elapsed in self.call_history:
            record = found.setdefault(name, {"elapsed_time": 0, "occurrence": 0})
            record["elapsed_time"] += elapsed
            record["occurrence"] += 1
        return found

    def print_report(self, unit: str = "auto", file: IO[str] = sys.stdout) -> None:
        """Prints the summary as a table.

        ``unit`` is sec, ms, us or ns; auto chooses by the longest time and
        auto_foreach for each name. KeyError for any other.
        """
        summary = self.summary()
        if unit == "auto":
            times = [record["elapsed_time"] for record in summary.values()]
            unit = self._choose_unit(max(times, default=0))
        rows = [(self._header, "ElapsedTime", "Occurrence")]
        for name, record in summary.items():
            seconds = record["elapsed_time"]
            own = self._choose_unit(seconds) if unit == "auto_foreach" else unit
            elapsed = f"{seconds * self.table[own]:.2f}{own}"
            rows.append((name, elapsed, str(record["occurrence"])))
        for line in aligned(rows, right=None):
            print(line, file=file)

    def _choose_unit(self, seconds: float) -> str:
        units = (unit for unit, factor in self.table.items() if seconds * factor >= 1)
        return next(units, "ns")
