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
from renga.core.types import ArrayLike

# Rows of five dots, from the top.
_DOTS = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "01110 10001 00001 00110 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "01110 10000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00001 01110",
)
_SIDE = 16


def draw_digits(count: int, seed: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Images and their digits. Dots are two pixels wide, of random contrast.

    Shapes:
        images: (count, 1, 16, 16) float32
        labels: (count,) int32
    """
    random = numpy.random.RandomState(seed)
    glyphs = numpy.array([[list(row) for row in dots.split()] for dots in _DOTS], int)
    glyphs = glyphs.repeat(2, axis=1).repeat(2, axis=2)  # 14 x 10 pixels
    labels = random.randint(10, size=count).astype(numpy.int32)
    images = random.normal(0, 0.3, (count, 1, _SIDE, _SIDE))
    height, width = glyphs.shape[1:]
    for image, label in zip(images, labels):
        top = random.randint(_SIDE - height + 1)
        left = random.randint(_SIDE - width + 1)
        contrast = random.uniform(0.5, 1.0)
        image[0, top : top + height, left : left + width] += contrast * glyphs[label]
    return images.astype(numpy.float32), labels


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
