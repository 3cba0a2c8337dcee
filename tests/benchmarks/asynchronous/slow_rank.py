"""How many samples ranks learn in a given time, one of which is four times slower.

    python -m tests.benchmarks.asynchronous.slow_rank  # 8 and 64 virtual ranks
    mpiexec -n 2 python -m tests.benchmarks.asynchronous.slow_rank --real

Prints the samples as a part of those that the ranks learn alone. Either the last rank
is always the slow one, or it is and has batches of a quarter of the size ("smaller"),
or each is in turn, for one of its steps ("wanders") or two ("lingers"). Virtual steps
take 10 ms. Real ones are those of MLPs of two widths, about 2 and 25 ms; a slow one
sleeps for three times as long as a fast one takes. Real ranks need OMP_NUM_THREADS=1
and a core each. Before each run, the ranks train for as long with the same slow steps
and without messages; that is what they learn alone.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import simulated
from renga.distributed import create_communicator, create_multi_node_optimizer
from renga.distributed.asynchronous import (
    create_gossip_optimizer,
    create_server_optimizer,
)

STEP, SLOWER = 10e-3, 4
BATCH = 256  # of real ranks
TURNS = {"wanders": 1, "lingers": 2}  # slow steps of a rank before the next one's
KINDS = ("always", "smaller", *TURNS)


def ways(servers):
    """By name: how to make the optimizer, and whether equally many updates are due."""

    def served(staleness):
        return lambda opt, comm: create_server_optimizer(
            opt, comm, staleness, servers=servers
        )

    return {
        "synchronous": (create_multi_node_optimizer, True),
        "SSP(4)": (served(4), False),
        "A-SGD": (served(math.inf), False),
        "AD-PSGD": (lambda o, c: create_gossip_optimizer(o, c, "adpsgd"), False),
    }


def network(width):
    layers = [L.Linear(width, width), F.relu, L.Linear(width, width), F.relu]
    return L.Classifier(renga.Sequential(*layers, L.Linear(width, 10)))


def is_slow(worker, workers, step, kind):
    if kind in TURNS:
        return step // TURNS[kind] % workers == worker
    return worker == workers - 1


def train(comm, name, seconds, kind):
    """Updates of this virtual rank; None if it serves."""
    make, equal = ways(1)[name]
    model = network(8)
    optimizer = make(renga.optimizers.SGD(1e-3).setup(model), comm)
    if not getattr(optimizer, "is_worker", True):
        return optimizer.serve()
    serves = 1 if hasattr(optimizer, "is_worker") else 0
    worker, workers = comm.rank - serves, comm.size - serves
    batch = batch_of(worker, workers, 4, 8, kind)
    optimizer.update(model, *batch)  # all begin together

    def pause(step):
        slow = is_slow(worker, workers, step, kind)
        comm.advance(slow and kind != "smaller")

    return steps_in(comm, optimizer, batch, seconds, equal, lambda: comm.clock, pause)


def train_real(comm, make, equal, seconds, kind, width, place, fast):
    """Updates of this rank.

    Args:
        make: makes the optimizer, for the ranks of ``comm``.
        place: this rank and the number of ranks that train at the same time.
        fast: the seconds of a step that is not slow.
    """
    model = network(width)
    optimizer = make(renga.optimizers.SGD(1e-3).setup(model), comm)
    batch = batch_of(*place, BATCH, width, kind)
    part = len(batch[0]) / BATCH
    for _ in range(3):
        optimizer.update(model, *batch)
    comm.barrier()

    def pause(step):
        if is_slow(*place, step, kind):
            time.sleep((SLOWER - 1) * fast * part)

    return steps_in(comm, optimizer, batch, seconds, equal, time.perf_counter, pause)


def batch_of(worker, workers, size, width, kind):
    random = np.random.RandomState(worker)
    if kind == "smaller" and is_slow(worker, workers, 0, kind):
        size //= SLOWER
    x = random.normal(size=(size, width)).astype("float32")
    return x, random.randint(0, 10, size).astype("int32")


def steps_in(comm, optimizer, batch, seconds, equal, clock, pause):
    """How many updates are made in so many seconds; ``pause(step)`` is in each."""
    model = optimizer.target
    step, begin = 0, clock()

    def loss(x, t):
        pause(step)
        return model(x, t)

    while equal or clock() - begin < seconds:
        optimizer.update(loss, *batch)
        step += 1
        if equal and comm.bcast_obj(clock() - begin >= seconds):
            break
    if hasattr(optimizer, "join"):
        optimizer.join()
    return step


def share(steps, alone, kind):
    """What is learnt, in batches of a fast rank, as a part of what ``alone`` is."""

    def learnt(counts):
        of_slow = counts[-1] / (SLOWER if kind == "smaller" else 1)
        return sum(counts[:-1]) + of_slow

    return learnt(steps) / learnt(alone)


def alone_on_virtual_ranks(seconds, kind, ranks):
    """The steps of each rank without messages."""
    fast = seconds / STEP
    if kind in TURNS:  # one of as many steps as there are ranks is slow
        return [fast * ranks / (ranks - 1 + SLOWER)] * ranks
    return [fast] * (ranks - 1) + [fast / (1 if kind == "smaller" else SLOWER)]


def virtual(ranks, gbits, seconds):
    machine = simulated.Machine(latency=50e-6, bandwidth=gbits * 1e9 / 8)
    for kind in KINDS:
        for name in ways(1):
            servers = name in ("SSP(4)", "A-SGD")
            outcome = simulated.run(
                lambda comm, name=name, kind=kind: train(comm, name, seconds, kind),
                ranks + servers,
                machine,
                seconds_of=lambda rank, slow: STEP * (SLOWER if slow else 1),
            )
            steps = [n for n in outcome.results if n is not None]
            alone = alone_on_virtual_ranks(seconds, kind, ranks)
            row(ranks, "10 ms", kind, name, share(steps, alone, kind))


def real(comm, width, seconds):
    single = create_communicator("local")
    place = comm.rank, comm.size

    def run(group, make, equal, kind, fast):
        comm.barrier()
        done = train_real(group, make, equal, seconds, kind, width, place, fast)
        return comm.allgather_obj(done)

    def alone(kind, fast):
        return run(single, lambda opt, group: opt, False, kind, fast)

    fast = seconds * comm.size / sum(alone("always", 0.0))
    for kind in KINDS:
        for name, (make, equal) in ways(None).items():
            without = alone(kind, fast)
            part = share(run(comm, make, equal, kind, fast), without, kind)
            if comm.rank == 0:
                row(comm.size, f"{fast * 1e3:.1f} ms", kind, name, part)


def row(ranks, step, kind, name, part):
    print(f"{ranks:>6}{step:>10}{kind:>10}{name:>14}{part:>8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", nargs="+", type=int, default=[8, 64])
    parser.add_argument("--gbits", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--real", action="store_true", help="under mpiexec")
    parser.add_argument("--widths", nargs="+", type=int, default=[300, 1200])
    arguments = parser.parse_args()
    if arguments.real:
        comm = create_communicator("mpi")
        for width in arguments.widths:
            real(comm, width, arguments.seconds)
        return
    for ranks in arguments.ranks:
        virtual(ranks, arguments.gbits, arguments.seconds)


if __name__ == "__main__":
    main()
