"""Training on several ranks with a checkpoint after each iteration, until it is killed.

    mpiexec -n 3 python killed_training.py FOLDER

Writes into FOLDER/begun from which iteration this job went on.
"""

import pathlib
import sys

import numpy as np

import renga
import renga.links as L
from renga import training
from renga.distributed import (
    create_communicator,
    create_multi_node_checkpointer,
    create_multi_node_optimizer,
    scatter_dataset,
)


def main():
    folder = pathlib.Path(sys.argv[1])
    comm = create_communicator("mpi")
    random = np.random.RandomState(comm.rank)
    x = random.normal(size=(60, 10)).astype("float32")
    data = scatter_dataset(list(zip(x, (x[:, 0] > 0).astype("int32"))), comm)
    model = L.Classifier(renga.Sequential(L.Linear(10, 300), L.Linear(300, 2)))
    optimizer = renga.optimizers.Adam().setup(model)
    optimizer = create_multi_node_optimizer(optimizer, comm)
    iterator = renga.iterators.SerialIterator(data, 5)
    updater = training.updaters.StandardUpdater(iterator, optimizer)
    trainer = training.Trainer(updater, (10**9, "iteration"), out=str(folder))
    checkpointer = create_multi_node_checkpointer("cp", comm, path=str(folder))
    checkpointer.maybe_load(trainer)
    trainer.extend(checkpointer, trigger=(1, "iteration"))
    if comm.rank == 0:
        (folder / "begun").write_text(str(updater.iteration))
    trainer.run()


main()
