"""Measures what a rank computes with, and times repeated operations."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy

from renga import functions as F
from renga.communicators import Communicator
from renga.parallel.plan.costs import Device

_CACHES = 1 << 23  # bytes, more than the caches of a core have


def lower_quartile(times: Iterable[float]) -> float:
    """What an operation takes while nothing else uses the cores.

    Not the shortest time: a step is the sum of many operations, of which some take
    longer.
    """
    ordered = sorted(times)
    return ordered[len(ordered) // 4]


def slowest_seconds(comm: Communicator, act: Callable[[], object]) -> float:
    """The seconds that the slowest rank takes, of those that begin to act together."""
    comm.barrier()
    start = time.perf_counter()
    act()
    times: list[float] = comm.allgather_obj(time.perf_counter() - start)
    return max(times)


def cache_filler() -> Callable[[], object]:
    """A function that fills the caches of a core with memory that it has written to."""
    memory = numpy.ones(_CACHES // 4, numpy.float32)
    return lambda: numpy.add(memory, 1, out=memory)


_ROWS = 1024
_BYTES = 64 << 20
_REPETITIONS = 12


def measured_device(comm: Communicator) -> tuple[Device, float]:
    """The slowest rank's device, and the spread of its times; every rank calls it.

    All ranks compute at the same time. Products are of 1024 × 1024 matrices, and 64 MiB
    are copied, read and written. The spread is the standard deviation over the mean of
    products, over all ranks and repetitions.
    """
    a = numpy.ones((_ROWS, _ROWS), numpy.float32)
    x, y = numpy.ones(_BYTES, numpy.uint8), numpy.empty(_BYTES, numpy.uint8)
    products = _seconds(comm, lambda: F.matmul(a, a))
    copies = _seconds(comm, lambda: numpy.copyto(y, x))
    found = comm.allgather_obj((products, lower_quartile(copies)))
    slowest = max(lower_quartile(own) for own, _ in found)
    alike = [seconds for own, _ in found for seconds in own]
    spread = statistics.stdev(alike) / statistics.mean(alike)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    device = Device(
        2 * _ROWS**3 / slowest,
        2 * _BYTES / max(seconds for _, seconds in found),
        memory=memory / comm.intra_size,
    )
    return device, spread


def _seconds(comm: Communicator, act: Callable[[], Any]) -> list[float]:
    times = []
    for _ in range(_REPETITIONS):
        comm.barrier()
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return times[2:]
