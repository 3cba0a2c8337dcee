"""Times of calls, by name."""

from __future__ import annotations

import sys
from typing import IO, Any

from renga.function_hooks.running import RunningFunctions
from renga.utils.table import aligned


class CallTimes:
    """A record of calls, which may be nested.

    ``call_history`` lists each call's name and seconds, including nested calls.
    """

    table = {"sec": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    _header = "FunctionName"

    def __init__(self) -> None:
        self.call_history: list[tuple[str, float]] = []
        self._running = RunningFunctions()
        self._total_time = 0.0

    def _stop(self, function: Any, name: str) -> None:
        run = self._running.stop(function)
        if run is not None:
            self.call_history.append((name, run.elapsed / 1e9))
            self._total_time += run.own / 1e9

    def total_time(self) -> float:
        """The total seconds of all calls; nested ones count once."""
        return self._total_time

    def summary(self) -> dict[str, dict[str, Any]]:
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
