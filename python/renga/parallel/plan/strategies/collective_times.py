"""What the collectives of parallel links take on real ranks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy

from renga.communicators import Communicator
from renga.core.variable import Variable
from renga.parallel.placement import CHANNEL, PARTIAL, REPLICATE, Placement
from renga.parallel.plan.device import cache_filler, lower_quartile, slowest_seconds
from renga.parallel.redistribute import Redistribution

_SIZES = [4**n for n in range(5, 13)]  # 1 KiB to 16 MiB
_REPETITIONS = 9
Points = tuple[tuple[int, float], ...]  # bytes and seconds, in order


class CollectiveTimes(NamedTuple):
    """Measured seconds of redistributions between all ranks.

    Latency and bandwidth of a message are not enough: links pack what they send, wait
    for each other, and write to memory that is not in a cache.
    """

    all_to_all: Points  # by the bytes that each rank sends to each other
    all_reduce: Points  # by the bytes of the array

    @classmethod
    def measure(cls, comm: Communicator) -> CollectiveTimes:
        """The times on a communicator; every rank calls it and gets the same."""
        return cls(
            *(
                tuple((size, _seconds(comm, kind, size)) for size in _SIZES)
                for kind in (CHANNEL, PARTIAL)
            )
        )

    def scaled(self, factor: float) -> CollectiveTimes:
        """The times of collectives that take so many times as long."""
        return CollectiveTimes(
            *(tuple((size, factor * t) for size, t in points) for points in self)
        )


def interpolated(points: Points, size: int) -> float:
    """The seconds for so many bytes, as powers of the size between measured ones.

    Smaller sizes take as long as the least one, larger ones as long for each byte as
    the largest one.
    """
    if size <= points[0][0]:
        return points[0][1]
    if size >= points[-1][0]:
        return points[-1][1] * size / points[-1][0]
    i = next(i for i, (own, _) in enumerate(points) if own > size)
    (a, first), (b, second) = points[i - 1 : i + 1]
    weight = math.log(size / a) / math.log(b / a)
    return float(first ** (1 - weight) * second**weight)


def _seconds(comm: Communicator, source: Placement, size: int) -> float:
    """Of a redistribution to all ranks; the lower quartile of the slowest rank's.

    As in a training step, what is sent has just been written, and the memory of the
    result is in no cache.
    """
    rows = 16
    x = numpy.ones((rows, max(1, size // 4 // rows)), numpy.float32)
    sizes = [x.shape[1]] * comm.size if source == CHANNEL else []
    change = Redistribution(comm, source, REPLICATE, sizes)

    fill_caches = cache_filler()

    def seconds() -> float:
        fill_caches()
        numpy.add(x, 1, out=x)
        return slowest_seconds(comm, lambda: change.apply(Variable(x)).array)

    return lower_quartile(seconds() for _ in range(_REPETITIONS))
