"""Snapshots and their writers."""

import multiprocessing
import os
import threading
import time
from unittest.mock import MagicMock

import chainer.links as L
import numpy as np
from cases.training.training import trainer_of
from chainer.training import extensions, triggers
from chainer.training.extensions import (
    computational_graph,
    snapshot_writers,
    variable_statistics_plot,
)


def case_classes_of_workers():
    thread = snapshot_writers.ThreadWriter().create_worker("f", ".", {})
    process = snapshot_writers.ProcessWriter().create_worker("f", ".", {})
    kinds = threading.Thread, multiprocessing.Process
    return isinstance(thread, kinds), isinstance(process, kinds), thread.is_alive()


def case_queues_and_consumers_that_are_mocks():
    class Own(snapshot_writers.QueueWriter):
        create_queue = create_consumer = MagicMock()

    writer = Own()
    own = Own.create_queue.return_value
    writer("a", ".", {})
    writer("b", ".", {})
    writer.finalize()
    writer.finalize()
    calls = [own.start.call_count, own.put.call_count, own.join.call_count]
    task = MagicMock()
    own.get.side_effect = [task, task, None]
    writer.consume(own)
    return [*calls, task[0].call_count, own.task_done.call_count]


def case_own_worker():
    calls = []

    class Worker:
        def start(self):
            calls.append("start")

        def join(self):
            calls.append("join")

    class Own(snapshot_writers.StandardWriter):
        def create_worker(self, filename, outdir, target, **kwds):
            calls.append((filename, outdir, sorted(kwds)))
            return Worker()

    writer = Own(compression=False)
    writer("a", ".", {})
    writer("b", ".", {})
    writer.finalize()
    writer.finalize()
    return calls


def case_own_task():
    calls = []
    writer = snapshot_writers.ThreadQueueWriter(task=lambda *args: calls.append(args))
    writer("a", ".", {})
    writer("b", ".", {})
    writer.finalize()
    return calls


def case_own_queue():
    calls = []

    class Own(snapshot_writers.ThreadQueueWriter):
        def create_task(self, savefun):
            return lambda *args: calls.append(args[0])

        def create_queue(self):
            calls.append("queue")
            return super().create_queue()

        def create_consumer(self, q):
            calls.append("consumer")
            return threading.Thread(target=self.consume, args=(q,))

    writer = Own()
    writer("a", ".", {})
    writer.finalize()
    return calls


def written(writer):
    writer("f.npz", ".", {"x": np.arange(3.0)})
    writer.finalize()
    with np.load("f.npz") as found:
        return sorted(os.listdir(".")), dict(found)


def case_simple_writer():
    return written(snapshot_writers.SimpleWriter())


def case_thread_writer():
    return written(snapshot_writers.ThreadWriter())


def case_thread_queue_writer():
    return written(snapshot_writers.ThreadQueueWriter())


def snapshots(n=8, **options):
    trainer = trainer_of(n)
    trainer.extend(extensions.snapshot(**options), trigger=(2, "iteration"))
    trainer.run()
    return sorted(os.listdir("out"))


def case_snapshot():
    return snapshots()


def case_snapshot_name():
    return snapshots(filename="s_{.updater.epoch}")


def case_snapshot_retains():
    trainer = trainer_of(8)
    trainer.extend(extensions.snapshot(n_retains=2), trigger=(2, "iteration"))
    trainer.extend(lambda t: time.sleep(0.02), trigger=(1, "iteration"), name="wait")
    trainer.run()
    return sorted(os.listdir("out"))


def case_snapshot_condition():
    return snapshots(condition=lambda: False)


def case_snapshot_autoload():
    snapshots(n=4)
    trainer = trainer_of(8)
    trainer.extend(extensions.snapshot(autoload=True))
    started = []
    trainer.extend(
        lambda t: started.append(t.updater.iteration),
        name="note",
        trigger=(1, "iteration"),
    )
    trainer.run()
    return started


def case_snapshot_on_error():
    def fail(trainer):
        raise ValueError("no")

    trainer = trainer_of(4)
    trainer.extend(extensions.snapshot(snapshot_on_error=True), trigger=(10, "epoch"))
    trainer.extend(fail, trigger=(3, "iteration"))
    try:
        trainer.run()
    except ValueError as error:
        return str(error), sorted(os.listdir("out"))


def case_snapshot_object():
    trainer = trainer_of(4)
    trainer.extend(
        extensions.snapshot_object(L.Linear(2, 1), "m_{.updater.iteration}"),
        trigger=(2, "iteration"),
    )
    trainer.run()
    with np.load("out/m_4") as found:
        return sorted(os.listdir("out")), sorted(found.files)
