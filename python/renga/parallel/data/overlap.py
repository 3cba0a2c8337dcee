"""Whether gradients are averaged during the backward pass, or after it: by a trial."""

from __future__ import annotations

import numpy

from renga.communicators import Communicator

# In the first step the order of buckets is not known yet, in the second their memory
# is new.
_WARM_UP = 2
_ROUNDS = 3


class OverlapTrial:
    """Chooses whether communication overlaps with the backward pass, by timing both.

    Communication in the background takes time from cores that compute, on a fast
    network perhaps more than it hides. Results are the same to the bit. After two
    steps of warm-up, six steps alternate between the two; each counts by its shortest
    step on the slowest rank, from the beginning of the backward pass to the last mean.
    All ranks make the same choice.

    Args:
        comm: the ranks.
        choice: the choice, where memory makes it and no trial is needed.
    """

    def __init__(self, comm: Communicator, choice: bool | None = None) -> None:
        self._comm = comm
        self._steps = 0
        self._seconds = numpy.full(2, numpy.inf)  # without overlap, with it
        self._choice = choice if comm.size > 1 else True

    @property
    def choice(self) -> bool | None:
        """Whether steps overlap from now on; None during the trial."""
        return self._choice

    @property
    def overlaps(self) -> bool:
        """Whether this step overlaps."""
        if self._choice is not None:
            return self._choice
        return self._steps < _WARM_UP or self._steps % 2 == 0

    def begin(self) -> None:
        """Called when the backward pass begins."""
        if self._choice is None:
            self._begun = self._comm.clock

    def end(self) -> None:
        """Called when all gradients are averaged; every rank calls it in each step."""
        if self._choice is not None:
            return
        if self._steps >= _WARM_UP:
            way = int(self.overlaps)
            elapsed = self._comm.clock - self._begun
            self._seconds[way] = min(elapsed, self._seconds[way])
        self._steps += 1
        if self._steps == _WARM_UP + 2 * _ROUNDS:
            without, with_overlap = self._comm.all_reduce(self._seconds, "max")
            self._choice = bool(with_overlap <= without)
