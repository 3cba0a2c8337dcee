"""All-reduce in place beside MPI_Allreduce, in turn, in the same processes.

    mpiexec -n 2 python tests/benchmarks/all_reduce.py

Prints, for each size, the median microseconds of rank 0 for MPI (through mpi4py), for
renga on ordinary arrays and on arrays of a window, and how many times as fast as MPI
these are.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
from mpi4py import MPI

from renga.communicators import create_communicator

SIZES = [4 << 10 << (2 * i) for i in range(9)]


def main() -> None:
    comm = create_communicator("mpi")
    ordinary = np.zeros(SIZES[-1] // 4, np.float32)
    window = comm.window(SIZES[-1] // 4)
    window[:] = 0
    world = MPI.COMM_WORLD
    if comm.rank == 0:
        print(f"{'bytes':>10}{'MPI':>12}{'ordinary':>12}{'window':>12}   ratios")
    for size in SIZES:
        ours, shared = ordinary[: size // 4], window[: size // 4]
        ways = {
            "MPI": lambda x=ours: world.Allreduce(MPI.IN_PLACE, x),
            "ordinary": lambda x=ours: comm.all_reduce(x, out=x),
            "window": lambda x=shared: comm.all_reduce(x, out=x),
        }
        rounds = 1000 if size <= 1 << 16 else 200 if size <= 4 << 20 else 15
        times: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(rounds + 3):
            for name, act in ways.items():
                world.Barrier()
                begun = time.perf_counter()
                act()
                if turn >= 3:
                    times[name].append(time.perf_counter() - begun)
        medians = {name: statistics.median(t) * 1e6 for name, t in times.items()}
        if comm.rank == 0:
            cells = "".join(f"{value:>12.1f}" for value in medians.values())
            ratios = [medians["MPI"] / medians[k] for k in ("ordinary", "window")]
            print(f"{size:>10}{cells}   " + "  ".join(f"{r:.2f}" for r in ratios))


if __name__ == "__main__":
    main()
