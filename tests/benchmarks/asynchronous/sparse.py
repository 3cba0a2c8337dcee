"""Samples per second of Hogwild on a sparse problem, on one rank and on two.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.asynchronous.sparse
    OMP_NUM_THREADS=1 mpiexec -n 2 python -m tests.benchmarks.asynchronous.sparse

Logistic regression with a weight for each of 20 000 words in 16 classes; a batch of 256
samples has 20 words each. Every rank takes its own samples. Prints the samples per
second of all ranks together: the median of a few rounds, and the accuracy on new ones.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from renga.distributed import create_communicator
from renga.distributed.asynchronous import create_hogwild_optimizer
from renga.optimizers import SGD

WORDS, CLASSES, LENGTH, BATCH = 20_000, 16, 20, 256
ROUNDS, STEPS = 5, 10


def samples(random, truth, count):
    """Words, and the class that most of their hidden weights are for."""
    x = random.randint(0, WORDS, (count, LENGTH)).astype("int32")
    return x, truth[x].sum(axis=1).argmax(axis=1).astype("int32")


class Bag(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.weights = L.EmbedID(WORDS, CLASSES, initialW=0.0)

    def forward(self, x, t):
        y = F.sum(self.weights(x), axis=1)
        self.accuracy = float(F.accuracy(y, t).array)
        return F.softmax_cross_entropy(y, t)


def main() -> None:
    comm = create_communicator("mpi")
    truth = np.random.RandomState(0).normal(size=(WORDS, CLASSES))
    random = np.random.RandomState(comm.rank + 1)
    batches = [samples(random, truth, BATCH) for _ in range(ROUNDS * STEPS)]
    model = Bag()
    optimizer = create_hogwild_optimizer(SGD(5.0).setup(model), comm)
    optimizer.update(model, *batches[0])
    speeds = []
    for begin in range(0, len(batches), STEPS):
        comm.barrier()
        start = time.perf_counter()
        for batch in batches[begin : begin + STEPS]:
            optimizer.update(model, *batch)
        comm.barrier()
        seconds = time.perf_counter() - start
        speeds.append(comm.size * STEPS * BATCH / seconds)
    optimizer.join()
    model(*samples(np.random.RandomState(99), truth, 2000))
    if comm.rank == 0:
        middle = statistics.median(speeds)
        print(f"{comm.size} ranks: {middle:.0f} samples/s, {model.accuracy:.3f} right")


if __name__ == "__main__":
    main()
