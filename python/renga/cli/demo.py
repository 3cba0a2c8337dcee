"""Trains a small network on drawn digits, alone and on two ranks, in some seconds.

It needs neither a network nor a data set. Both runs see the same batches, so their
parameters agree up to rounding.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy

import renga
import renga.functions as F
import renga.links as L
from renga._core import Variable
from renga.cli.drawn_digits import draw_digits
from renga.core.types import ArrayLike

_BATCH = 50


class Network(renga.Chain):
    """Two convolutions and a linear layer; ELU and average pooling have no kinks."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(1, 16, 3, pad=1)
            self.conv2 = L.Convolution2D(16, 32, 3, pad=1)
            self.fc = L.Linear(None, 10)

    def forward(self, x: ArrayLike) -> Variable:
        """Scores.

        Shapes:
            x: (N, 1, 16, 16)
            y: (N, 10)
        """
        h = F.average_pooling_2d(F.elu(self.conv1(x)), 2)
        h = F.average_pooling_2d(F.elu(self.conv2(h)), 2)
        return self.fc(h)


def train(ranks: int, epochs: int) -> tuple[float, float, dict[str, numpy.ndarray]]:
    """Trains as one of ``ranks``: seconds, accuracy on new images, parameters."""
    numpy.random.seed(0)
    images, labels = draw_digits(2000, seed=0)
    model = L.Classifier(Network())
    optimizer: Any = renga.optimizers.MomentumSGD(lr=0.05)
    comm = None
    if ranks > 1:
        comm = renga.distributed.create_communicator("mpi")
        optimizer = renga.distributed.create_multi_node_optimizer(optimizer, comm)
    optimizer.setup(model)
    rank = comm.rank if comm else 0
    started = time.perf_counter()
    for epoch in range(epochs):
        order = numpy.random.RandomState(epoch).permutation(len(images))
        for start in range(0, len(order), _BATCH):
            own = order[start : start + _BATCH][rank::ranks]
            optimizer.update(model, images[own], labels[own])
        if rank == 0:
            print(f"  epoch {epoch + 1}: loss {float(model.loss.array):.4f}")
    seconds = time.perf_counter() - started
    images, labels = draw_digits(1000, seed=1)
    with renga.using_config("train", False), renga.no_backprop_mode():
        model(images, labels)
    parameters = {name: numpy.array(p.array) for name, p in model.namedparams()}
    return seconds, float(model.accuracy.array), parameters


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text}")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of ``renga demo``."""
    parser.add_argument("--epochs", type=_positive, default=5, help="5 unless given")


def main(chosen: argparse.Namespace) -> int:
    """Trains and prints a table; 1 if a run learned too little or they disagree."""
    print("one process")
    runs = {1: train(1, chosen.epochs)}
    print("two ranks")
    try:
        runs[2] = renga.launch(train, 2, chosen.epochs, ranks=2)
    except ImportError as error:
        print(f"  left out: {error}")
    print("\nranks      time   accuracy on new images")
    for ranks, (seconds, accuracy, _) in runs.items():
        print(f"{ranks:5}{seconds:8.1f} s{accuracy:25.1%}")
    difference = max(_difference(runs[1][2], run[2]) for run in runs.values())
    if 2 in runs:
        print(f"largest difference between their parameters: {difference:.1e}")
    learned = chosen.epochs < 5 or min(run[1] for run in runs.values()) > 0.9
    if not learned or difference > 1e-4:
        print("renga demo: expected 90 % and parameters within 1e-4 of each other")
        return 1
    return 0


def _difference(a: dict[str, numpy.ndarray], b: dict[str, numpy.ndarray]) -> float:
    return max(float(abs(a[name] - b[name]).max()) for name in a)
