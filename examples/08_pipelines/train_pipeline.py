"""Train VGG or a language model in a pipeline, whose weights may change on the way.

    mpiexec -n 4 python train_pipeline.py --task digits --weights spectrain
    python train_pipeline.py --stages 8 --weights stale

With --stages the ranks are virtual: threads of one process, one of which runs at a
time. The numbers are those of as many processes.
"""

import argparse
import functools
import tempfile

import numpy
from tasks import TASKS, perplexity

import renga
from renga import training
from renga.communicators import simulated
from renga.pipeline import Pipeline, PipelineUpdater
from renga.training import extensions

# The schedule and what a stage computes with while other batches are on their way.
KINDS = {
    "flush": {"schedule": "1f1b", "weights": "flush"},  # synchronous
    "stale": {"schedule": "pipedream", "weights": "flush"},
    "stash": {"schedule": "pipedream", "weights": "stash"},
    "spectrain": {"schedule": "pipedream", "weights": "spectrain"},
    "pipeoptim": {"schedule": "pipedream", "weights": "pipeoptim"},
}


def train(comm, task, kind, epochs, seed=0):
    """What every epoch observed, as the last stage knows it."""
    numpy.random.seed(seed)
    iterator = renga.iterators.SerialIterator(task.train, task.batch_size)
    example = renga.dataset.concat_examples(task.train[: task.batch_size])
    cuts = task.cuts(comm.size)
    model = Pipeline(task.model(), comm, *example, stages=cuts, **KINDS[kind])
    optimizer, rate = task.optimizer()
    optimizer.setup(model)
    updater = PipelineUpdater(iterator, optimizer)
    folder = tempfile.TemporaryDirectory()  # the log is returned
    trainer = training.Trainer(updater, (epochs, "epoch"), out=folder.name)
    test = renga.iterators.SerialIterator(task.test, 64, repeat=False, shuffle=False)
    trainer.extend(extensions.Evaluator(test, model))
    task.schedule(trainer, rate, epochs)
    log = extensions.LogReport(postprocess=perplexity)
    trainer.extend(log)
    if comm.rank == comm.size - 1:
        columns = ["epoch", "main/loss", f"validation/main/{task.metric}"]
        trainer.extend(extensions.PrintReport(columns))
    with folder:
        trainer.run()
    return log.log


def train_on_virtual_ranks(stages, *args, **kwargs):
    """The log of the last of as many virtual ranks."""
    act = functools.partial(_with_arguments, args, kwargs)
    return simulated.run(act, stages).results[-1]


def _with_arguments(args, kwargs, comm):
    return train(comm, *args, **kwargs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=TASKS, default="digits")
    parser.add_argument("--weights", choices=KINDS, default="spectrain")
    parser.add_argument("--epoch", type=int, default=5)
    parser.add_argument("--stages", type=int, help="virtual ranks, without mpiexec")
    parser.add_argument("--size", type=int, help="images or words, also to test with")
    args = parser.parse_args()
    arguments = TASKS[args.task](args.size), args.weights, args.epoch
    if args.stages:
        train_on_virtual_ranks(args.stages, *arguments)
    else:
        train(renga.distributed.create_communicator(), *arguments)


if __name__ == "__main__":
    main()
