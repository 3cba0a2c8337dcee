"""How many samples ranks learn in a given time, one of which is four times slower.

    python -m tests.benchmarks.asynchronous.slow_rank  # 8 and 64 virtual ranks
    mpiexec -n 2 python -m tests.benchmarks.asynchronous.slow_rank --real

Prints the samples as a part of those that the ranks would learn alone, added up. Either
the last rank is always the slow one, or it is and has batches of a quarter of the size
("smaller"), or each is in turn, for one of its steps ("wanders") or two ("lingers").
Virtual steps take 10 ms; real ones are those of an MLP with 0.7 MB of parameters, and
the slow rank sleeps for three times as long as its step has taken. Real ranks need
OMP_NUM_THREADS=1 and a core each.
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


def train(comm, name, seconds, kind, real):
    """Updates of this rank; None if it serves."""
    make, equal = ways(None if real else 1)[name]
    width = 300 if real else 8
    model = network(width)
    optimizer = make(renga.optimizers.SGD(1e-3).setup(model), comm)
    if not getattr(optimizer, "is_worker", True):
        return optimizer.serve()
    serves = 0 if real or not hasattr(optimizer, "is_worker") else 1
    worker, workers = comm.rank - serves, comm.size - serves
    random = np.random.RandomState(comm.rank)
    x = random.normal(size=(256 if real else 4, width)).astype("float32")
    t = random.randint(0, 10, len(x)).astype("int32")
    if kind == "smaller" and is_slow(worker, workers, 0, kind):
        x, t = x[: len(x) // SLOWER], t[: len(t) // SLOWER]
    optimizer.update(model, x, t)  # all begin together
    clock = time.perf_counter if real else lambda: comm.clock

    def loss(x, t):
        begin = clock()
        slow = is_slow(worker, workers, step, kind)
        y = model(x, t)
        if real and slow:
            y.backward()  # about as long as the one that follows
            time.sleep((SLOWER - 1) * (clock() - begin))
        elif not real:
            comm.advance(slow and kind != "smaller")
        return y

    step, begin = 0, clock()
    while equal or clock() - begin < seconds:
        optimizer.update(loss, x, t)
        step += 1
        if equal and comm.bcast_obj(clock() - begin >= seconds):
            break
    if hasattr(optimizer, "join"):
        optimizer.join()
    return step


def share(steps, alone, kind):
    """A part of what is learnt without communication; ``alone``: steps of a fast rank.

    What is learnt is counted in batches of a fast rank.
    """
    others, of_slow = sum(steps[:-1]), steps[-1]
    if kind in TURNS:  # of n ranks' turns, one is slow
        expected = len(steps) * alone * len(steps) / (len(steps) - 1 + SLOWER)
    else:
        expected = (len(steps) - 1 + 1 / SLOWER) * alone
    return (others + of_slow / (SLOWER if kind == "smaller" else 1)) / expected


def virtual(ranks, gbits, seconds):
    machine = simulated.Machine(latency=50e-6, bandwidth=gbits * 1e9 / 8)
    for kind in KINDS:
        for name in ways(1):
            servers = name in ("SSP(4)", "A-SGD")
            outcome = simulated.run(
                lambda comm, name=name, kind=kind: train(
                    comm, name, seconds, kind, False
                ),
                ranks + servers,
                machine,
                seconds_of=lambda rank, slow: STEP * (SLOWER if slow else 1),
            )
            steps = [n for n in outcome.results if n is not None]
            row(ranks, kind, name, share(steps, seconds / STEP, kind))


def real(comm, seconds):
    for kind in KINDS:
        for name in ways(None):
            single = create_communicator("local")
            alone = train(single, "synchronous", seconds, "always", True)
            comm.barrier()
            steps = comm.allgather_obj(train(comm, name, seconds, kind, True))
            # A rank alone is the slow one.
            fast = max(comm.allgather_obj(alone)) * SLOWER
            if comm.rank == 0:
                row(comm.size, kind, name, share(steps, fast, kind))


def row(ranks, kind, name, part):
    print(f"{ranks:>6}{kind:>10}{name:>14}{part:>8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", nargs="+", type=int, default=[8, 64])
    parser.add_argument("--gbits", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--real", action="store_true", help="under mpiexec")
    arguments = parser.parse_args()
    if arguments.real:
        real(create_communicator("mpi"), arguments.seconds)
        return
    for ranks in arguments.ranks:
        virtual(ranks, arguments.gbits, arguments.seconds)


if __name__ == "__main__":
    main()
