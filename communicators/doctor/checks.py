"""The checks. Each is called on all ranks, and raises if it fails."""

from __future__ import annotations

import os
from typing import Callable

import numpy as np

from renga.communicators.communicator import Communicator
from renga.communicators.transport.mpi import MpiCommunicator

# More elements than fit into an int.
LARGE = 5 << 29


class Skipped(Exception):
    """The check cannot run here; the message says why."""


def require(held: bool, expected: str, got: object) -> None:
    """Raises RuntimeError unless ``held``."""
    if not held:
        raise RuntimeError(f"expected {expected}, got {got}")


def threads(comm: Communicator, large: bool) -> str:
    """Whether MPI supports communication in the background."""
    if not isinstance(comm, MpiCommunicator):
        raise Skipped("no processes of MPI")
    level = comm.thread_level()
    require(level == "MPI_THREAD_MULTIPLE", "MPI_THREAD_MULTIPLE", level)
    return f"{level}; {comm.library()}"


def topology(comm: Communicator, large: bool) -> str:
    """On which nodes the ranks are."""
    sizes = comm.allgather_obj((comm.inter_rank, comm.intra_size, os.uname().nodename))
    nodes = sorted(set(sizes))
    names = ", ".join(f"{name} ({count})" for _, count, name in nodes)
    return f"{comm.size} ranks on {comm.inter_size} nodes: {names}"


def shared_memory(comm: Communicator, large: bool) -> str:
    """Whether the ranks of a node share memory."""
    if comm.intra_size == 1:
        raise Skipped("one rank on each node")
    if not comm.shares_memory():
        raise RuntimeError(
            "too little space in /dev/shm, or nodes with unequal numbers of ranks: "
            "ranks of one node send messages"
        )
    free = os.statvfs("/dev/shm")
    return f"{free.f_bavail * free.f_frsize / 2**30:.1f} GiB free in /dev/shm"


def point_to_point(comm: Communicator, large: bool) -> str:
    """Messages between all pairs of ranks: short, long, empty and with tags."""
    for shape in ((), (0,), (3, 5), (300_000,)):
        for step in range(1, comm.size):
            to, source = (comm.rank + step) % comm.size, (comm.rank - step) % comm.size
            x = np.full(shape, comm.rank, "float64")
            y = np.empty(shape, "float64")
            work = comm.recv(source, tag=step, out=y, wait=False)
            sent = comm.send(x, to, tag=step, wait=False)
            work.wait(), sent.wait()
            require(bool((y == source).all()), f"{source} from rank {source}", y)
    return f"{comm.size * (comm.size - 1)} pairs"


def collectives(comm: Communicator, large: bool) -> str:
    """Every collective, in the foreground and in the background."""
    ranks = np.arange(comm.size)
    total = ranks.sum()
    for size in (1, 1000, 500_000):
        x = np.full((comm.size, size), comm.rank, "float32")
        works = [
            comm.all_reduce(x, wait=False),
            comm.reduce_scatter(x, wait=False),
            comm.all_gather(x[0], wait=False),
            comm.all_to_all(x, wait=False),
        ]
        results = [comm.all_reduce(x), comm.reduce_scatter(x)]
        results += [comm.all_gather(x[0]), comm.all_to_all(x)]
        for y, work in zip(results, works):
            require(np.array_equal(y, work.wait()), "the same in the background", y)
        require(bool((results[0] == total).all()), f"a sum of {total}", results[0])
        require(
            bool((results[2][:, 0] == ranks).all()),
            "all ranks' numbers",
            results[2][:, 0],
        )
        comm.broadcast(x, root=comm.size - 1)
        require(bool((x == comm.size - 1).all()), "the last rank's number", x)
    return "all_reduce, reduce_scatter, all_gather, all_to_all, broadcast"


def large_counts(comm: Communicator, large: bool) -> str:
    """A message of more elements than fit into an int, and their reduction."""
    if not large:
        raise Skipped("--large sends 2.5 GiB")
    needed = 1.2 * LARGE * comm.intra_size
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if not all(comm.allgather_obj(free > needed)):
        raise Skipped(f"needs {needed / 2**30:.0f} GiB of free memory on each node")
    x = np.zeros(LARGE, np.uint8)
    indices = [0, 1 << 30, (1 << 31) + 5, LARGE - 1]
    if comm.rank == 0:
        x[indices] = [1, 2, 3, 4]
    if comm.size > 1 and comm.rank < 2:
        if comm.rank == 0:
            comm.send(x, 1, tag=0)
        else:
            comm.recv(0, tag=0, out=x)
    comm.all_reduce(x, out=x)
    expected = [min(2, comm.size) * k for k in (1, 2, 3, 4)]
    require(x[indices].tolist() == expected, str(expected), x[indices])
    require(int(np.count_nonzero(x)) == 4, "4 numbers that are not 0", "others")
    return f"{LARGE} elements, 2.5 GiB"


CHECKS: dict[str, Callable[[Communicator, bool], str]] = {
    "threads": threads,
    "topology": topology,
    "shared memory": shared_memory,
    "point to point": point_to_point,
    "collectives": collectives,
    "large counts": large_counts,
}
