"""How fast messages and reductions are here, beside what the model predicts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from renga import _communicators

_SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20)


def links(comm: Any) -> Iterator[tuple[int, float, float]]:
    """(rank, seconds, bytes per second) of messages between rank 0 and each other.

    The seconds are the least a short message took, and the bytes per second those
    of 4 MiB. Every rank gets what rank 0 measured.
    """
    for peer in range(1, comm.size):
        short = _one_way(comm, peer, 8, 200)
        long = _one_way(comm, peer, 4 << 20, 5)
        yield comm.bcast_obj((peer, short, (4 << 20) / max(long - short, 1e-9)))


def _one_way(comm: Any, peer: int, size: int, rounds: int) -> float:
    x = np.zeros(size, np.uint8)
    native = comm._native
    best = float("inf")
    comm.barrier()
    if comm.rank not in (0, peer):
        return best
    for _ in range(rounds):
        begun = time.perf_counter()
        if comm.rank == 0:
            native.send([x], peer, 7)
            native.receive([x], peer, 7)
        else:
            native.receive([x], 0, 7)
            native.send([x], 0, 7)
        best = min(best, (time.perf_counter() - begun) / 2)
    return best


def algorithms(comm: Any) -> Iterator[tuple[int, dict[str, float], str]]:
    """(bytes, seconds by algorithm, the one the model prefers) for several sizes.

    ``shared`` is what the communicator does by itself, where ranks share memory.
    """
    network = network_of(comm)
    for size in _SIZES:
        x = np.zeros(size // 4, np.float32)
        predicted = _communicators.all_reduce_seconds(comm.size, size, False, *network)
        del predicted["ring"]  # it has another order of operands, and is not chosen
        times = {}
        for name in [None, *predicted]:
            comm.set_config("all_reduce_algorithm", value=name)
            times[name or "shared"] = _median(comm, x)
        comm.set_config("all_reduce_algorithm", value=None)
        if not comm.shares_memory():
            del times["shared"]
        yield size, times, min(predicted, key=lambda name: predicted[name])


def network_of(comm: Any) -> tuple[float, float]:
    """Latency and seconds per byte between the halves of the ranks."""
    return comm._native.measure_network()


def _median(comm: Any, x: np.ndarray) -> float:
    times = []
    begun = time.perf_counter()
    for round in range(12):
        comm.barrier()
        start = time.perf_counter()
        comm.all_reduce(x, out=x)
        times.append(time.perf_counter() - start)
        if comm.bcast_obj(round >= 2 and time.perf_counter() - begun > 1):
            break
    return max(comm.allgather_obj(statistics.median(times[1:])))
