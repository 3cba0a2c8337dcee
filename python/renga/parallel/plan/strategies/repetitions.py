"""What an operation takes that is repeated as in a training step."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy

_CACHES = 1 << 23  # bytes, more than the caches of a core have


def lower_quartile(times: Iterable[float]) -> float:
    """What an operation takes while nothing else uses the cores.

    Not the shortest time: a step is the sum of many operations, of which some take
    longer.
    """
    ordered = sorted(times)
    return ordered[len(ordered) // 4]


def cache_filler() -> Callable[[], object]:
    """A function that fills the caches of a core with memory that it has written to."""
    memory = numpy.ones(_CACHES // 4, numpy.float32)
    return lambda: numpy.add(memory, 1, out=memory)
