"""Collectives and sharded training on four hosts with four ranks each.

    python -m tests.benchmarks.hosts.nodes  # as root: makes the hosts
    python -m tests.benchmarks.hosts.nodes 200  # that send at 200 Mbit/s, not 1000
    python -m tests.benchmarks.hosts.nodes 0  # without a limit
    python -m tests.benchmarks.hosts.nodes 1000 --rank  # what runs on each rank

Prints for each row the median milliseconds; those that the bytes which a host has to
send take at the link's rate, in frames with their headers (the bound); bound / time;
the milliseconds that the model of the network predicts where there is one; the bytes
that a host's interface has sent, relative to those that it has to send; and the
processor seconds of all ranks, which poll while they wait. The hosts are network
namespaces (tests/communicators/transport/mpi/hosts.py).
"""

from __future__ import annotations

import pathlib
import resource
import statistics
import sys
import tempfile
import time
from typing import Callable

import numpy as np

from tests.communicators.transport.mpi.hosts import PACKET_BYTES, hosts, missing

HOSTS, RANKS_EACH = 4, 4
ROUNDS = 5
WARM_UP = 9  # training chooses in its first eight steps whether it overlaps
LAYERS, WIDTH = 8, 1024
# Bytes of a frame for each of its data: headers of Ethernet, IP and TCP.
FRAME = 1514 / 1448
TITLES = "ms", "bound", "part", "predicted", "sent", "processor"


def bytes_per_second(megabits: int) -> float:
    return megabits * 1e6 / 8 or float("inf")


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


def rows(
    comm, rate: float
) -> list[tuple[str, Callable[[], object], float, float | None]]:
    """Each row's name, what is timed, bytes that a host sends, predicted seconds."""
    from renga.communicators.simulated import Machine

    machine = Machine(RANKS_EACH, 50e-6, rate / FRAME, adapters=1)
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


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def sent_bytes() -> int:
    """Bytes that this rank's host has sent."""
    return int(pathlib.Path("/sys/class/net/eth0/statistics/tx_bytes").read_text())


def play_rank(megabits: int) -> None:
    """Prints the table on rank 0."""
    from renga.distributed import create_communicator

    comm = create_communicator("hierarchical")
    rate = bytes_per_second(megabits)
    for name, run, size, predicted in rows(comm, rate):
        for _ in range(WARM_UP):
            run()
        comm.barrier()
        used, sent = processor_seconds(), sent_bytes()
        times = []
        for _ in range(ROUNDS):
            comm.barrier()
            begun = time.perf_counter()
            run()
            comm.barrier()
            times.append(time.perf_counter() - begun)
        spent = processor_seconds() - used, sent_bytes() - sent
        everyones = comm.gather_obj(spent)
        if comm.rank == 0:
            seconds = statistics.median(times)
            # What the limit lets through at once takes no time.
            bound = max(0, size * FRAME - PACKET_BYTES) / rate
            model = "" if predicted is None else f"{predicted * 1e3:.1f}"
            used, sent = sum(u for u, _ in everyones), max(b for _, b in everyones)
            cells = (
                f"{seconds * 1e3:>12.1f}{bound * 1e3:>12.1f}{bound / seconds:>12.2f}"
            )
            cells += f"{model:>12}{sent / ROUNDS / size:>12.2f}{used / ROUNDS:>12.2f}"
            print(f"row {name:<26}{cells}", flush=True)


def main(megabits: int) -> None:
    if missing():
        sys.exit(f"nodes: {missing()}")
    print(" " * 26 + "".join(f"{title:>12}" for title in TITLES))
    with tempfile.TemporaryDirectory() as name:
        with hosts(HOSTS, pathlib.Path(name)) as some:
            if megabits:
                some.limit(megabits)
            arguments = [__file__, str(megabits), "--rank"]
            done = some.run(*arguments, ranks_each=RANKS_EACH, timeout=600)
    lines = [s[4:] for s in done.stdout.splitlines() if s.startswith("row ")]
    assert done.returncode == 0 and lines, done.stdout
    print("\n".join(lines))


if __name__ == "__main__":
    megabits = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    if sys.argv[2:] == ["--rank"]:
        play_rank(megabits)
    else:
        main(megabits)
