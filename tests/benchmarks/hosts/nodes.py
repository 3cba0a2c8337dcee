"""Collectives and sharded training on four hosts with four ranks each.

    python -m tests.benchmarks.hosts.nodes  # as root: makes the hosts
    python -m tests.benchmarks.hosts.nodes --rank  # what runs on each rank

Prints for each row the median milliseconds, those that the bytes which a host has to
send take at the link's rate (the bound), bound / time, and the milliseconds that the
model of the network predicts where there is one. The hosts are network namespaces
(tests/communicators/transport/mpi/hosts.py) that send at 1 Gbit/s, 125 MB/s.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
import tempfile
import time
from typing import Callable

import numpy as np

HOSTS, RANKS_EACH = 4, 4
RATE = 1.25e8  # bytes per second that a host sends
ROUNDS = 5
LAYERS, WIDTH = 8, 1024


def sharded_step(comm, shard: str) -> tuple[Callable[[], None], int]:
    """A training step of an MLP, and the bytes of its parameters."""
    import renga
    import renga.functions as F
    import renga.links as L
    from renga.distributed import create_multi_node_optimizer

    model = renga.Sequential(
        *(L.Linear(WIDTH, WIDTH, nobias=True) for _ in range(LAYERS))
    )
    optimizer = renga.optimizers.SGD(0.01).setup(model)
    optimizer = create_multi_node_optimizer(optimizer, comm, shard=shard)
    x = np.ones((2, WIDTH), np.float32)
    return lambda: optimizer.update(lambda x: F.sum(model(x)), x), 4 * LAYERS * WIDTH**2


def rows(comm) -> list[tuple[str, Callable[[], object], float, float | None]]:
    """Each row's name, what is timed, bytes that a host sends, predicted seconds."""
    from renga.communicators.simulated import Machine

    machine = Machine(RANKS_EACH, 50e-6, RATE, adapters=1)
    others = 1 - 1 / HOSTS  # the part of an array that belongs to other hosts
    made: list[tuple[str, Callable[[], object], float, float | None]] = []
    for size in (1 << 20, 1 << 25):
        x = np.ones(size // 4, np.float32)
        blocks = np.ones((comm.size, size // 4 // comm.size), np.float32)
        name = f"{size >> 20} MiB"
        made += [
            (
                f"all-reduce, {name}",
                lambda x=x: comm.all_reduce(x, out=x),
                2 * others * size,
                machine.all_reduce(comm.size, size),
            ),
            (
                f"all-to-all, {name}",
                lambda x=blocks: comm.all_to_all(x),
                RANKS_EACH * others * size,
                machine.all_to_all(comm.size, size // comm.size),
            ),
        ]
    for shard, moves in (("states", 2), ("parameters", 3)):
        step, size = sharded_step(comm, shard)
        made.append((f"step, sharded {shard}", step, moves * others * size, None))
    return made


def play_rank() -> None:
    """Prints the table on rank 0."""
    from renga.distributed import create_communicator

    comm = create_communicator("hierarchical")
    for name, run, size, predicted in rows(comm):
        times = []
        for turn in range(ROUNDS + 1):
            comm.barrier()
            begun = time.perf_counter()
            run()
            comm.barrier()
            if turn > 0:
                times.append(time.perf_counter() - begun)
        if comm.rank == 0:
            seconds, bound = statistics.median(times), size / RATE
            model = "" if predicted is None else f"{predicted * 1e3:>12.1f}"
            cells = f"{seconds * 1e3:>12.1f}{bound * 1e3:>12.1f}{bound / seconds:>8.2f}"
            print(f"row {name:<26}{cells}{model}", flush=True)


def main() -> None:
    from tests.communicators.transport.mpi.hosts import hosts, missing

    if missing():
        sys.exit(f"nodes: {missing()}")
    titles = ("ms", "bound", "part", "predicted")
    print(f"{'':<26}{titles[0]:>12}{titles[1]:>12}{titles[2]:>8}{titles[3]:>12}")
    with tempfile.TemporaryDirectory() as name:
        with hosts(HOSTS, pathlib.Path(name)) as some:
            some.limit(int(RATE * 8 / 1e6))
            done = some.run(__file__, "--rank", ranks_each=RANKS_EACH, timeout=300)
    lines = [s[4:] for s in done.stdout.splitlines() if s.startswith("row ")]
    assert done.returncode == 0 and lines, done.stdout
    print("\n".join(lines))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        play_rank()
    else:
        main()
