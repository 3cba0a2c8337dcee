"""Bars of progress that programs for Chainer derive from, and its clock."""

from __future__ import annotations

import collections
import datetime
import sys
import time
from collections.abc import Iterable
from time import perf_counter as _get_time  # noqa: F401
from typing import Any, TextIO

# chainer.training.extensions.util


class ProgressBar:
    """Draws the lines of ``get_lines``, over those of the call before.

    Args:
        bar_length: number of characters of a bar.
        out: a text file; the standard output unless given.
    """

    def __init__(
        self, bar_length: int | None = None, out: TextIO | None = None
    ) -> None:
        self._bar_length = 50 if bar_length is None else bar_length
        self._out = sys.stdout if out is None else out
        self._recent_timing: collections.deque[tuple[float, float, float]] = (
            collections.deque([], maxlen=100)
        )

    def update_speed(
        self, iteration: float, epoch_detail: float
    ) -> tuple[float, float]:
        """Iterations and epochs per second over the last hundred calls."""
        now = time.time()
        self._recent_timing.append((iteration, epoch_detail, now))
        first_iteration, first_epoch, first = self._recent_timing[0]
        seconds = now - first
        if seconds == 0:
            return float("inf"), float("inf")
        speeds = iteration - first_iteration, epoch_detail - first_epoch
        return speeds[0] / seconds, speeds[1] / seconds

    def get_lines(self) -> Iterable[str]:
        """The lines to draw, with their ends; for subclasses."""
        raise NotImplementedError

    def update(self) -> None:
        """Draws the lines, and puts the cursor before them."""
        self.erase_console()
        lines = list(self.get_lines())
        for line in lines:
            self._out.write(line)
        self.move_cursor_up(len(lines))
        self.flush()

    def close(self) -> None:
        """Erases the lines."""
        self.erase_console()
        self.flush()

    def erase_console(self) -> None:
        """Erases what stands behind the cursor."""
        self._out.write("\033[J")

    def move_cursor_up(self, n: int) -> None:
        """Moves the cursor up by ``n`` lines."""
        self._out.write(f"\033[{n:d}A")

    def flush(self) -> None:
        """Flushes the file, if it can be."""
        if hasattr(self._out, "flush"):
            self._out.flush()


# chainer.training.extensions.evaluator


class _IteratorProgressBar(ProgressBar):
    """How much of a data set an iterator has returned."""

    def __init__(
        self,
        iterator: Any,
        bar_length: int | None = None,
        out: TextIO | None = None,
    ) -> None:
        super().__init__(bar_length, out)
        self.iterator = iterator

    def get_lines(self) -> list[str]:
        part, size = self.iterator.epoch_detail, len(self.iterator.dataset)
        done = self.iterator.current_position or round(part * size)
        bar = ("#" * int(part * self._bar_length)).ljust(self._bar_length, ".")
        speed, epochs = self.update_speed(done, part)
        left = (1 - part) / epochs if epochs else 0
        return [
            f"validation [{bar}] {part:6.2%}\n",
            f"{done:10} / {size} iterations\n",
            f"{speed:10.5g} iters/sec. Estimated time to finish: "
            f"{datetime.timedelta(seconds=left)}.\n",
        ]
