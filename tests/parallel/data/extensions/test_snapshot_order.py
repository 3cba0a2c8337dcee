"""Snapshots of several ranks hold an iteration that all of the trainer has seen."""

import os
import shutil

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.distributed import (
    create_multi_node_checkpointer,
    create_multi_node_optimizer,
    elastic,
)
from renga.distributed.extensions import multi_node_snapshot
from renga.iterators import SerialIterator
from renga.training import extensions, triggers

DATA = list(numpy.random.default_rng(0).normal(size=(6, 3)).astype("f"))


def snapshot(comm, trainer, folder):
    taken = extensions.snapshot(filename="s{.updater.iteration}", autoload=True)
    trainer.extend(
        multi_node_snapshot(comm, taken, [range(comm.size)]),
        trigger=(1, "iteration"),
    )
    return lambda: None


def checkpointer(comm, trainer, folder):
    saver = create_multi_node_checkpointer("cp", comm, path=folder)
    saver.finalize = lambda: None  # the files of a run that was stopped remain
    trainer.extend(saver, trigger=(1, "iteration"))
    return lambda: saver.maybe_load(trainer)


def checkpoints(comm, trainer, folder):
    trainer.extend(elastic.Checkpoints(comm, folder), trigger=(1, "iteration"))
    return lambda: None


@pytest.mark.parametrize("add_saver", [snapshot, checkpointer, checkpoints])
def test_a_resumed_run_goes_on_as_if_it_had_never_stopped(
    some_ranks, tmp_path, add_saver
):
    def run(comm, folder, stop):
        model = L.Linear(3, 1, initialW=1)
        optimizer = renga.optimizers.SGD(0.5).setup(model)
        optimizer = create_multi_node_optimizer(optimizer, comm)
        iterator = SerialIterator(DATA, 2, shuffle=False)
        updater = training.updaters.StandardUpdater(
            iterator, optimizer, loss_func=lambda x: F.sum(model(x) ** 2)
        )
        log = []

        def note(trainer):
            log.append((trainer.updater.iteration, optimizer.lr, "note"))

        def note_best(trainer):
            log.append((trainer.updater.iteration, optimizer.lr, "best"))

        def observe(trainer):
            trainer.observation["value"] = [3, 1, 2, 5, 5, 6, 4, 9][
                trainer.updater.iteration - 1
            ]

        trainer = training.Trainer(
            updater,
            triggers.EarlyStoppingTrigger(
                (1, "iteration"), "value", 3, "min", max_trigger=(stop, "iteration")
            ),
            out=folder,
        )
        # This runs before the extensions of which it saves the state.
        trainer.extend(observe, priority=400)
        trainer.extend(extensions.WarmupShift("lr", 0.1, 2, 0.3), trigger=(1, "epoch"))
        best = triggers.MaxValueTrigger("value", (2, "iteration"))
        load = add_saver(comm, trainer, folder)
        trainer.extend(note_best, trigger=best, priority=-100)
        trainer.extend(note, trigger=(2, "iteration"), priority=-100)
        load()
        trainer.run()
        comm.barrier()
        return log, trainer.updater.iteration, optimizer.lr

    def act(comm):
        folder = comm.bcast_obj(str(tmp_path / "files"))
        results = []
        for stops in ([8], [3, 8], [4, 8]):
            comm.barrier()
            if comm.rank == 0:
                shutil.rmtree(folder, ignore_errors=True)
                os.makedirs(folder)
            comm.barrier()
            logs = [run(comm, folder, stop) for stop in stops]
            results.append(
                (sum((log for log, _, _ in logs), []), logs[-1][1:], len(logs))
            )
        return results

    for whole, *resumed in some_ranks(act):
        assert whole[1][0] == 5  # stopped early
        for log, end, _ in resumed:
            assert (log, end) == whole[:2]
