"""Training whose ranks are killed and join; each checkpoint counts the examples.

    renga run -n 2:3 --restarts 10 killed_training.py FOLDER

The model has one parameter per example, and its gradient counts how often the example
was trained on. FOLDER/log gets a line for each iteration of rank 0 and one for each
start of a rank. Training ends after the epoch in which FOLDER/stop appears.
"""

import json
import os
import pathlib
import sys
import time

import numpy as np

import renga
from renga import training
from renga.distributed import create_multi_node_optimizer, elastic

EXAMPLES = 60
BATCH = 2
# That of mpiexec, which may be killed.
JOB = os.getppid()


class Counts(renga.Chain):
    """A loss whose gradient, times the number of ranks' examples, is a count."""

    def __init__(self, comm):
        super().__init__()
        self._examples = comm.size * BATCH
        with self.init_scope():
            self.count = renga.Parameter(np.zeros(EXAMPLES, "float32"))

    def forward(self, i):
        # The mean over the ranks of the means over their batches.
        return -renga.functions.sum(self.count[i]) * self._examples / BATCH


def note(folder, **what):
    with open(folder / "log", "a") as file:
        file.write(json.dumps({**what, "time": time.time(), "job": JOB}) + "\n")


@elastic.run
def train(comm, folder):
    model = Counts(comm)
    optimizer = renga.optimizers.SGD(1.0).setup(model)
    optimizer = create_multi_node_optimizer(optimizer, comm)
    data = np.arange(EXAMPLES, dtype="int32")
    iterator = elastic.StreamIterator(data, BATCH, comm)
    updater = training.updaters.StandardUpdater(iterator, optimizer)
    is_over = training.triggers.IntervalTrigger(1, "epoch")

    def should_stop(trainer):
        return comm.bcast_obj((folder / "stop").exists()) and is_over(trainer)

    trainer = training.Trainer(updater, should_stop, out=str(folder))
    checkpoints = elastic.Checkpoints(comm, folder / "checkpoints")
    trainer.extend(checkpoints, trigger=(1, "iteration"))

    def tell(trainer):
        time.sleep(0.02)
        if comm.rank == 0:
            note(folder, step=updater.iteration, ranks=comm.size)

    trainer.extend(tell, trigger=(1, "iteration"), priority=-200)
    checkpoints.load(trainer)
    pid = os.getpid()
    note(folder, begun=updater.iteration, rank=comm.rank, pid=pid)
    trainer.run()
    if comm.rank == 0:
        count = model.count.array
        samples = iterator.epoch * EXAMPLES + iterator.current_position
        note(folder, end=updater.iteration, count=count.tolist(), samples=samples)


if __name__ == "__main__":
    train(pathlib.Path(sys.argv[1]))
