"""Milliseconds of a step on two ranks at 0.1 Gbit/s, with and without local SGD.

    python -m tests.benchmarks.asynchronous.slow_network
    python -m tests.benchmarks.asynchronous.slow_network --compute 78 --gbits 1 0.1

The ranks are virtual: they exchange the parameters of an MLP (784, eight times 512, 10;
9.0 MB), and a step without communication takes --compute milliseconds, those of
tests/benchmarks/hosts/data_parallel.py. Prints the mean of as many steps as there are
between a few averages.
"""

from __future__ import annotations

import argparse

import numpy as np

import renga
from renga.communicators import simulated
from renga.distributed import create_multi_node_optimizer
from renga.distributed.asynchronous import (
    create_gossip_optimizer,
    create_local_sgd_optimizer,
)
from renga.optimizers import SGD, NesterovAG

ELEMENTS = 784 * 512 + 7 * 512 * 512 + 512 * 10 + 8 * 512 + 10
AVERAGES = 3


def diloco(opt, comm):
    return create_local_sgd_optimizer(opt, comm, 100, outer=NesterovAG(0.7, 0.9))


WAYS = {  # with the updates between two averages
    "synchronous": (create_multi_node_optimizer, 1),
    "local SGD, H=16": (lambda o, c: create_local_sgd_optimizer(o, c, 16), 16),
    "DiLoCo, H=100": (diloco, 100),
    "SGP": (lambda o, c: create_gossip_optimizer(o, c, "sgp"), 1),
    "AD-PSGD": (lambda o, c: create_gossip_optimizer(o, c, "adpsgd"), 10),
}


class Parameters(renga.Link):
    """As many numbers as the MLP has; their gradients are zeros."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.w = renga.Parameter(np.zeros(ELEMENTS, "float32"))


def train(comm, name, compute):
    """Milliseconds of a step."""
    make, every = WAYS[name]
    link = Parameters()
    optimizer = make(SGD(0.1).setup(link), comm)
    gradient = np.zeros(ELEMENTS, "float32")
    begin = 0.0
    for step in range((AVERAGES + 1) * every):
        if step == every:  # the first have sent the initial parameters
            begin = comm.clock
        comm.compute(compute * 1e-3)
        link.w.grad = gradient
        optimizer.update()
    return (comm.clock - begin) / (AVERAGES * every) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compute", type=float, default=78.0, help="ms")
    parser.add_argument("--gbits", nargs="+", type=float, default=[0.1])
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    for gbits in arguments.gbits:
        machine = simulated.Machine(latency=100e-6, bandwidth=gbits * 1e9 / 8)
        for name in WAYS:
            outcome = simulated.run(
                lambda comm, name=name: train(comm, name, arguments.compute),
                arguments.ranks,
                machine,
                seconds_of=lambda rank, task: 0.0,
            )
            print(f"{gbits:>8g}{name:>18}{max(outcome.results):>8.0f}", flush=True)


if __name__ == "__main__":
    main()
