"""Whether gradients are averaged while the backward pass runs: tried once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from renga.communicators import Communicator

# In the first step the order of buckets is not known yet, in the second their memory
# is new.
_WARM_UP = 2
_ROUNDS = 3


class OverlapTrial:
    """Chooses the faster of two ways to do the same, to the same bits.

    Communication in the background takes time from cores that compute: on a fast
    network that may be more than it hides. After two steps, six overlap in turn or do
    not; each way counts by its shortest step, from the beginning of the backward pass
    to the last mean, on the slowest rank. All ranks choose alike.

    Args:
        comm: the ranks.
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self._steps = 0
        self._seconds = numpy.full(2, numpy.inf)  # without overlap, with it
        self._choice: bool | None = None if comm.size > 1 else True

    @property
    def choice(self) -> bool | None:
        """Whether steps overlap from now on; None while that is tried."""
        return self._choice

    @property
    def overlaps(self) -> bool:
        """Whether this step overlaps."""
        if self._choice is not None:
            return self._choice
        return self._steps < _WARM_UP or self._steps % 2 == 0

    def begin(self) -> None:
        """The backward pass begins."""
        if self._choice is None:
            self._begun = _now(self._comm)

    def end(self) -> None:
        """All means are there; every rank calls it in each step."""
        if self._choice is not None:
            return
        if self._steps >= _WARM_UP:
            way = int(self.overlaps)
            elapsed = _now(self._comm) - self._begun
            self._seconds[way] = min(elapsed, self._seconds[way])
        self._steps += 1
        if self._steps == _WARM_UP + 2 * _ROUNDS:
            without, with_overlap = self._comm.all_reduce(self._seconds, "max")
            self._choice = bool(with_overlap <= without)


def _now(comm: Communicator) -> float:
    """In seconds; simulated ranks have clocks of their own."""
    clock = getattr(comm, "clock", None)
    return time.perf_counter() if clock is None else float(clock)
