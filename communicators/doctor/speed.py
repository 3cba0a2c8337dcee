"""Measures messages and reductions, and compares them with the network model."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import numpy as np

from renga import _communicators
from renga.communicators.communicator import Communicator

_SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20)


def links(comm: Communicator) -> Iterator[tuple[int, float, float]]:
    """Yields (rank, latency, bandwidth) of messages between rank 0 and each other.

    The latency is the shortest time of a message of 8 bytes, in seconds, the bandwidth
    that of 4 MiB, in bytes per second. Every rank gets what rank 0 measured.
    """
    for peer in range(1, comm.size):
        short = _one_way(comm, peer, 8, 200)
        long = _one_way(comm, peer, 4 << 20, 5)
        yield comm.bcast_obj((peer, short, (4 << 20) / max(long - short, 1e-9)))


def _one_way(comm: Communicator, peer: int, size: int, rounds: int) -> float:
    x = np.zeros(size, np.uint8)
    native = comm.native  # without headers
    best = float("inf")
    comm.barrier()
    if comm.rank not in (0, peer):
        return best
    for _ in range(rounds):
        start = time.perf_counter()
        if comm.rank == 0:
            native.send([x], peer, 7)
            native.receive([x], peer, 7)
        else:
            native.receive([x], 0, 7)
            native.send([x], 0, 7)
        best = min(best, (time.perf_counter() - start) / 2)
    return best


def algorithms(comm: Communicator) -> Iterator[tuple[int, dict[str, float], str]]:
    """Yields (bytes, seconds by algorithm, fastest by the model) for several sizes.

    ``shared`` is the reduction through shared memory, if the ranks share memory.
    """
    network = comm.network()
    for size in _SIZES:
        x = np.zeros(size // 4, np.float32)
        predicted = _communicators.all_reduce_seconds(comm.size, size, False, *network)
        del predicted["ring"]  # never selected: it takes the operands in another order
        times = {}
        for name in [None, *predicted]:
            comm.set_config("all_reduce_algorithm", value=name)
            times[name or "shared"] = _median(comm, x)
        comm.set_config("all_reduce_algorithm", value=None)
        if not comm.shares_memory():
            del times["shared"]
        yield size, times, min(predicted, key=lambda name: predicted[name])


def _median(comm: Communicator, x: np.ndarray) -> float:
    times = []
    begun = time.perf_counter()
    for round in range(12):
        comm.barrier()
        start = time.perf_counter()
        comm.all_reduce(x, out=x)
        times.append(time.perf_counter() - start)
        if comm.bcast_obj(round >= 2 and time.perf_counter() - begun > 1):
            break
    return float(max(comm.allgather_obj(statistics.median(times[1:]))))
