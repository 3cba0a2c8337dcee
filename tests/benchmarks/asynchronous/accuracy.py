"""Accuracy and speed of every method on 8 and 64 virtual ranks, one 4 times slower.

    python -m tests.benchmarks.asynchronous.accuracy
    python -m tests.benchmarks.asynchronous.accuracy --ranks 64 --methods A-SGD
    OMP_NUM_THREADS=1 mpiexec -n 2 python -m tests.benchmarks.asynchronous.accuracy

An MLP learns digits; all methods see the same number of images, drawn from all of them,
in steps of 256 for all ranks together. A step takes 10 ms of virtual time and 40 ms on
the last rank, on a network of 10 Gbit/s. Prints the accuracy on test images, the mean
over the seeds and the least, and the virtual seconds, the same in every run. Under
mpiexec the ranks are real and equally fast, every one serves, and the seconds are real.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import time

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import simulated
from renga.distributed import create_communicator, create_multi_node_optimizer
from renga.distributed.asynchronous import (
    Complete,
    create_elastic_averaging_optimizer,
    create_gossip_optimizer,
    create_local_sgd_optimizer,
    create_server_optimizer,
)
from renga.optimizers import MomentumSGD, NesterovAG

IMAGES, EPOCHS = 256, 30  # of a step of all ranks; of the training data
STEP, SLOWER = 10e-3, 4
MACHINE = simulated.Machine(latency=50e-6, bandwidth=1.25e9)


def served(staleness, aware=True):
    """With a server of its own where ranks are virtual: they have one thread each."""
    return lambda opt, comm: create_server_optimizer(
        opt,
        comm,
        staleness,
        servers=1 if is_virtual(comm) else None,
        staleness_aware=aware,
    )


def is_virtual(comm):
    return isinstance(comm, simulated.VirtualCommunicator)


def gossip(method, **options):
    return lambda opt, comm: create_gossip_optimizer(opt, comm, method, **options)


# How to make the optimizer, whether virtual ranks have a server, and whether all ranks
# have to make equally many updates.
METHODS = {
    "synchronous": (create_multi_node_optimizer, 0, True),
    "SSP(4)": (served(4), 1, False),
    "A-SGD": (served(math.inf), 1, False),
    "A-SGD, same rates": (served(math.inf, aware=False), 1, False),
    "local SGD": (lambda o, c: create_local_sgd_optimizer(o, c, 8), 0, True),
    "DiLoCo": (
        lambda o, c: create_local_sgd_optimizer(o, c, 8, outer=NesterovAG(0.7, 0.5)),
        *(0, True),
    ),
    "EASGD": (lambda o, c: create_elastic_averaging_optimizer(o, c, 1), 0, True),
    "D-PSGD": (gossip("dpsgd"), 0, True),
    "SGP": (gossip("sgp"), 0, True),
    "AD-PSGD": (gossip("adpsgd", graph=Complete()), 0, False),
    "GoSGD": (gossip("gosgd", graph=Complete(), probability=0.5), 0, False),
}


@functools.cache
def digits():
    """Images and labels, for training and for the test."""
    return [renga.dataset.concat_examples(part) for part in renga.datasets.get_digits()]


def network(seed):
    draw = renga.initializers.HeNormal(rng=np.random.RandomState(seed))
    layers = (
        *(L.Linear(64, 128, initialW=draw), F.relu),
        *(L.Linear(128, 128, initialW=draw), F.relu),
    )
    return L.Classifier(renga.Sequential(*layers, L.Linear(128, 10, initialW=draw)))


# These factors multiply the learning rate with more than two ranks. Pushes that wait
# for the slowest rank come in bursts of one version, the first of which has no
# staleness to divide by; a spring is weak if it has to hold 64 ranks.
FACTORS = {"SSP(4)": 0.1, "A-SGD, same rates": 0.1, "EASGD": 0.4}


class Budget:
    """Steps of all workers together; ``each`` bounds those of one."""

    def __init__(self, steps, each):
        self._left, self._each, self._taken = steps, each, {}

    def take(self, worker):
        taken = self._taken.get(worker, 0)
        if self._left == 0 or taken == self._each:
            return False
        self._left -= 1
        self._taken[worker] = taken + 1
        return True


def train(comm, name, rate, budget, seed):
    """The accuracy of one worker in the end; None on a server."""
    (x, t), test = digits()
    make, servers, _ = METHODS[name]
    servers *= is_virtual(comm)
    model = network(seed)
    rate *= FACTORS.get(name, 1) if comm.size > 2 else 1
    optimizer = make(MomentumSGD(rate).setup(model), comm)
    if not getattr(optimizer, "is_worker", True):
        return optimizer.serve()
    worker, workers = comm.rank - servers, comm.size - servers
    random = np.random.RandomState([seed, worker])
    while budget.take(worker):
        batch = random.choice(len(x), IMAGES // workers)
        if is_virtual(comm):
            comm.advance(worker == workers - 1)
        optimizer.update(model, x[batch], t[batch])
    if hasattr(optimizer, "join"):
        optimizer.join()
    with getattr(optimizer, "averaged", contextlib.nullcontext)():
        with renga.using_config("train", False), renga.no_backprop_mode():
            model(*test)
    return 100 * float(model.accuracy.array)


def steps_of_a_rank():
    return round(EPOCHS * len(digits()[0][0]) / IMAGES)


def virtual(name, ranks, rate, seed):
    """The accuracy in per cent, and the virtual seconds."""
    _, servers, equal = METHODS[name]
    steps = steps_of_a_rank()
    budget = Budget(steps * ranks, steps if equal else None)
    outcome = simulated.run(
        lambda comm: train(comm, name, rate, budget, seed),
        ranks + servers,
        MACHINE,
        seconds_of=lambda rank, is_slow: STEP * (SLOWER if is_slow else 1),
    )
    return outcome.results[-1], outcome.seconds[-1]


def real(comm, name, rate, seed):
    """The accuracy in per cent, and the seconds."""
    steps = steps_of_a_rank()
    comm.barrier()
    begin = time.perf_counter()
    accuracy = train(comm, name, rate, Budget(steps, None), seed)
    return accuracy, time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", nargs="+", type=int, default=[8, 64])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    comm = create_communicator("mpi")
    if comm.rank == 0:
        header = "| ranks | method | accuracy | least | seconds |"
        print(f"{header}\n|---|---|---|---|---|")
    for ranks in arguments.ranks if comm.size == 1 else [comm.size]:
        for name in arguments.methods:
            found = [
                virtual(name, ranks, arguments.rate, seed)
                if comm.size == 1
                else real(comm, name, arguments.rate, seed)
                for seed in arguments.seeds
            ]
            accuracies, seconds = zip(*found)
            numbers = f"{np.mean(accuracies):.1f} % | {min(accuracies):.1f} %"
            if comm.rank == 0:
                row = f"| {ranks} | {name} | {numbers} | {np.mean(seconds):.1f} |"
                print(row, flush=True)


if __name__ == "__main__":
    main()
