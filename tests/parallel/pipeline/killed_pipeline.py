"""Trains a pipeline with a snapshot after each iteration; resumes from the newest.

    mpiexec -n 3 python -m tests.parallel.pipeline.killed_pipeline FOLDER

Rank 0 writes into FOLDER/begun from which iteration this job goes on.
"""

import pathlib
import sys
import time

import numpy as np

import renga
from renga import training
from renga.pipeline import Pipeline, PipelineUpdater
from renga.training import extensions
from tests.parallel.pipeline import networks

ITERATIONS = 30


def batches():
    """The images in batches of 8, four of them."""
    return networks.images(batches=4)


def main():
    folder = pathlib.Path(sys.argv[1])
    comm = renga.distributed.create_communicator("mpi")
    x, t = (np.concatenate(arrays) for arrays in zip(*batches()))
    data = renga.datasets.TupleDataset(x, t)
    iterator = renga.iterators.SerialIterator(data, 8, shuffle=False)
    model = Pipeline(networks.Residual(), comm, x[:4], t[:4], micro_batches=2)
    optimizer = renga.optimizers.MomentumSGD(0.01).setup(model)
    updater = PipelineUpdater(iterator, optimizer)
    trainer = training.Trainer(updater, (ITERATIONS, "iteration"), out=str(folder))
    trainer.extend(extensions.snapshot(autoload=True), trigger=(1, "iteration"))

    def note_begin(trainer):
        if comm.rank == 0:
            (folder / "begun").write_text(str(updater.iteration))

    @training.make_extension(
        trigger=(1, "iteration"), priority=-200, initializer=note_begin
    )
    def take_time(trainer):
        time.sleep(0.05)

    trainer.extend(take_time)
    trainer.run()
    with model.gathered_parameters():
        if comm.rank == 0:
            renga.serializers.save_npz(folder / "model.npz", model.model)


if __name__ == "__main__":
    main()
