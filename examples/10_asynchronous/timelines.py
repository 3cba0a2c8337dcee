"""Draws when four ranks compute and when they wait, of which the last is slow.

python timelines.py --out asynchronous.svg
"""

import argparse

import matplotlib
import numpy
from matplotlib.figure import Figure
from methods import METHODS

import renga
from renga.communicators import simulated
from renga.distributed.asynchronous import (
    create_elastic_averaging_optimizer,
    create_local_sgd_optimizer,
)

STEP, SLOWER, UNTIL = 1.0, 2.5, 22.0  # seconds
ELEMENTS = 100_000
# Averages after fewer updates than anybody would choose, so that the picture has some.
SHORT = {
    "local SGD": lambda opt, comm: create_local_sgd_optimizer(opt, comm, 4),
    "EASGD": lambda opt, comm: create_elastic_averaging_optimizer(opt, comm, 4),
}
SHOWN = ("synchronous", "SSP(4)", "A-SGD", "local SGD", "EASGD", "D-PSGD", "AD-PSGD")


class Vector(renga.Link):
    """Pulled to zero."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.x = renga.Parameter(numpy.ones(ELEMENTS, "float32"))

    def forward(self):
        return renga.functions.sum(self.x**2)


def spans(comm, name):
    """When this rank computes; None for a rank that serves."""
    model, method = Vector(), METHODS[name]
    make = SHORT.get(name, method.make)
    optimizer = make(renga.optimizers.SGD(1e-3).setup(model), comm)
    if getattr(optimizer, "is_server", False):
        optimizer.serve()
        return None
    optimizer.update(model)
    found = []
    is_slow = comm.rank == comm.size - 1
    while len(found) < 10 if method.waits else comm.clock < UNTIL:
        begin = comm.clock
        comm.advance(STEP * (SLOWER if is_slow else 1))
        found.append((begin, comm.clock - begin))
        optimizer.update(model)
    if hasattr(optimizer, "join"):
        optimizer.join()
    return found


def draw(path):
    matplotlib.rcParams["svg.hashsalt"] = "renga"
    figure = Figure(figsize=(8, 1.15 * len(SHOWN)), layout="constrained")
    machine = simulated.Machine(latency=0.05, bandwidth=2e6)
    for ax, name in zip(figure.subplots(len(SHOWN), 1, sharex=True), SHOWN):
        outcome = simulated.run(
            lambda comm, name=name: spans(comm, name),
            4 + METHODS[name].servers,
            machine,
            seconds_of=lambda rank, seconds: seconds,
        )
        lanes = [found for found in outcome.results if found is not None]
        first = min(found[0][0] for found in lanes)
        for rank, found in enumerate(lanes):
            color = "#fce5cd" if rank == 3 else "#cfe2f3"
            bars = [(begin - first, seconds) for begin, seconds in found]
            ax.broken_barh(bars, (rank - 0.4, 0.8), facecolors=color, edgecolors="k")
        ax.set_yticks(range(4), [f"rank {rank}" for rank in range(4)], fontsize=6)
        ax.invert_yaxis()
        ax.set_xlim(0, UNTIL)
        ax.set_title(name, fontsize=9, loc="left")
    ax.set_xlabel("seconds")
    figure.savefig(path, metadata={"Date": None} if str(path).endswith("svg") else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="asynchronous.svg", help="picture")
    draw(parser.parse_args().out)


if __name__ == "__main__":
    main()
