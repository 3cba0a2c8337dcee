"""The networks of steps.cpp in Python, and the times of both.

``python tests/cpp/steps.py PROGRAM`` runs the C++ program and this one in turn, on one
thread, and prints the least CPU times of a training step in microseconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import numpy

import renga
import renga.functions as F
import renga.links as L


class Mlp(renga.Chain):
    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(inputs, units)
            self.l2 = L.Linear(units, units)
            self.l3 = L.Linear(units, 10)

    def forward(self, x: Any) -> Any:
        return self.l3(F.relu(self.l2(F.relu(self.l1(x)))))


class Convolutions(renga.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.c1 = L.Convolution2D(1, 8, 3, pad=1)
            self.n1 = L.BatchNormalization(8)
            self.c2 = L.Convolution2D(8, 16, 3, pad=1)
            self.n2 = L.BatchNormalization(16)
            self.out = L.Linear(16 * 2 * 2, 10)

    def forward(self, x: Any) -> Any:
        h = F.max_pooling_2d(F.relu(self.n1(self.c1(x))), 2)
        return self.out(F.max_pooling_2d(F.relu(self.n2(self.c2(h))), 2))


class Block(renga.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.c1 = L.Convolution2D(16, 16, 3, pad=1, nobias=True)
            self.n1 = L.BatchNormalization(16)
            self.c2 = L.Convolution2D(16, 16, 3, pad=1, nobias=True)
            self.n2 = L.BatchNormalization(16)

    def forward(self, x: Any) -> Any:
        return F.relu(self.n2(self.c2(F.relu(self.n1(self.c1(x))))) + x)


class Residual(renga.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            setattr(self, "in", L.Convolution2D(3, 16, 3, pad=1))
            self.b1, self.b2, self.b3 = Block(), Block(), Block()
            self.out = L.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        h = F.relu(getattr(self, "in")(x))
        return self.out(F.sum(self.b3(self.b2(self.b1(h))), (2, 3)) * (1 / 1024))


class Recurrent(renga.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.cell = L.StatelessLSTM(32, 64)
            self.out = L.Linear(64, 10)

    def forward(self, x: Any) -> Any:
        c = h = None
        for step in F.separate(x):
            c, h = self.cell(c, h, step)
        return self.out(h)


class Transformer(renga.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.n1 = L.LayerNormalization(64)
            self.attention = L.MultiHeadAttention(64, 4)
            self.n2 = L.LayerNormalization(64)
            self.l1 = L.Linear(64, 256)
            self.l2 = L.Linear(256, 64)
            self.out = L.Linear(64, 10)

    def forward(self, x: Any) -> Any:
        h = x + self.attention(self.n1(x))
        inner = F.gelu(self.l1(self.n2(h), n_batch_axes=2))
        y = h + self.l2(inner, n_batch_axes=2)
        return self.out(F.sum(y, 1) * (1 / 16))


# Each network has a function that makes it, and the shape of its input.
NETWORKS: dict[str, tuple[Any, tuple[int, ...], int]] = {
    "large_mlp": (lambda: Mlp(784, 1000), (100, 784), 100),
    "mlp": (lambda: Mlp(784, 100), (100, 784), 100),
    "small_mlp": (lambda: Mlp(64, 32), (32, 64), 32),
    "convolutions": (Convolutions, (32, 1, 8, 8), 32),
    "residual": (Residual, (8, 3, 32, 32), 8),
    "recurrent": (Recurrent, (12, 16, 32), 16),
    "transformer": (Transformer, (8, 16, 64), 8),
}


def train(network: str, updates: int) -> tuple[Any, float]:
    """The trained network, and the least CPU time of a step in microseconds."""
    numpy.random.seed(0)
    make, shape, batch = NETWORKS[network]
    net = make()
    optimizer = renga.optimizers.Adam().setup(net)
    x = numpy.random.normal(size=shape).astype(numpy.float32)
    t = numpy.arange(batch, dtype=numpy.int32) % 10
    least = float("inf")
    for _ in range(updates):
        start = time.process_time()
        net.cleargrads()
        F.softmax_cross_entropy(net(x), t).backward()
        optimizer.update()
        least = min(least, time.process_time() - start)
    return net, least * 1e6


def main(program: str) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for network in NETWORKS:
        updates = 100 if network in ("large_mlp", "residual") else 1500
        sides = {
            "C++": [program, network, str(updates), os.devnull],
            "Python": [sys.executable, __file__, "--measure", network, str(updates)],
        }
        times = dict.fromkeys(sides, float("inf"))
        for _ in range(4):
            for side, command in sides.items():
                printed = subprocess.check_output(command, env=environment)
                times[side] = min(times[side], float(printed))
        ratio = times["Python"] / times["C++"]
        print(f"{network}: {times} µs, ratio {ratio:.2f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        print(train(sys.argv[2], int(sys.argv[3]))[1])
    else:
        main(sys.argv[1])
