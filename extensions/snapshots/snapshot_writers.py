"""Writers of snapshots: synchronous and in the background."""

from __future__ import annotations

import multiprocessing
import os
import queue
import threading
from collections.abc import Callable, Mapping
from concurrent import futures
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

import numpy

from renga.core.serializer import AbstractSerializer
from renga.serializers import npz
from renga.serializers.atomic import atomic_write
from renga.utils.exceptions import MAIN_GUARD, CallOutcome

_SECONDS_PER_WAIT = 0.02


class TakenState(dict[str, Any]):
    """Named arrays that are serialized like the object they were copied from."""

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves every array under its name."""
        for key, value in self.items():
            serializer(key, value)


class Writer:
    """Base of writers, which are called with (filename, outdir, target)."""

    def __init__(self) -> None:
        self._post_save_hooks: list[Callable[[], Any]] = []

    def __call__(self, filename: str, outdir: str, target: object) -> None:
        """Writes ``target`` to the file called ``filename`` in ``outdir``."""
        raise NotImplementedError

    def finalize(self) -> None:
        """Waits until everything is written."""

    def save(
        self,
        filename: str,
        outdir: str,
        target: object,
        savefun: Callable[..., object],
        **kwds: object,
    ) -> None:
        """Calls ``savefun(path, target, **kwds)``: the file is replaced atomically.

        Raises:
            OSError: the file cannot be written; the old one is unchanged.
        """
        save_atomically(os.path.join(outdir, filename), target, savefun, kwds)
        self._post_save()

    def _add_cleanup_hook(self, hook: Callable[[], Any]) -> None:
        self._post_save_hooks.append(hook)

    def _post_save(self) -> None:
        for hook in self._post_save_hooks:
            hook()


def save_atomically(
    path: str,
    target: object,
    savefun: Callable[..., object],
    kwds: Mapping[str, object],
) -> None:
    """Calls ``savefun`` so that ``path`` is replaced atomically."""
    if type(target) is dict:
        target = TakenState(target)
    try:
        with atomic_write(path) as file:
            savefun(file.name, target, **kwds)
    except OSError as error:
        message = (
            f"snapshot: could not write {path}: {error.strerror or error}; "
            "a file that was there before is unchanged"
        )
        raise OSError(error.errno, message) from error


class SimpleWriter(Writer):
    """Writes synchronously, while training waits.

    Args:
        savefun: function of (path, target) and ``kwds``.
    """

    def __init__(
        self, savefun: Callable[..., object] = npz.save_npz, **kwds: object
    ) -> None:
        super().__init__()
        self._savefun = savefun
        self._kwds = kwds

    def __call__(self, filename: str, outdir: str, target: object) -> None:
        self.save(filename, outdir, target, self._savefun, **self._kwds)


class Worker:
    """A write that an executor runs; started and joined as a thread is."""

    def __init__(self, submit: Callable[[], futures.Future[CallOutcome]]) -> None:
        super().__init__()
        self._submit = submit
        self._future: futures.Future[CallOutcome] | None = None

    def start(self) -> None:
        """Begins to write."""
        self._future = self._submit()

    def is_alive(self) -> bool:
        """Whether it has begun and is not written yet."""
        return self._future is not None and not self._future.done()

    def join(self, timeout: float | None = None) -> None:
        """Waits for so many seconds, or until it is written.

        Raises the error of a write that failed.
        """
        if self._future is None:
            raise RuntimeError("join: expected a worker that was started")
        futures.wait([self._future], timeout)
        if self._future.done():
            try:
                outcome = self._future.result()
            except futures.BrokenExecutor:
                raise _not_written() from None
            outcome.get()


class ThreadWorker(Worker, threading.Thread):
    """A write in a writer's thread, which is a ``Thread`` as Chainer's is."""


class ProcessWorker(Worker, multiprocessing.Process):
    """A write in a writer's process, which is a ``Process`` as Chainer's is."""


class Joinable(Protocol):
    """A write that runs beside others; a thread and a process are one, too."""

    def start(self) -> None: ...

    def join(self) -> None: ...


class StandardWriter(SimpleWriter):
    """Base of writers with one worker; a call waits for the previous write.

    The exception of a write that failed is raised by the next call or at the end.
    """

    def __init__(
        self, savefun: Callable[..., object] = npz.save_npz, **kwds: object
    ) -> None:
        super().__init__(savefun, **kwds)
        self._worker: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy has no write of its own yet: the original waits for its one."""
        return {**vars(self), "_worker": None}

    def create_worker(
        self, filename: str, outdir: str, target: object, **kwds: object
    ) -> Joinable:
        """What writes the file: an object with ``start()`` and ``join()``."""
        raise NotImplementedError

    def __call__(self, filename: str, outdir: str, target: object) -> None:
        self._join()
        worker = self.create_worker(filename, outdir, _copy(target), **self._kwds)
        worker.start()
        self._worker = worker

    def _join(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.join()
            self._post_save()

    def finalize(self) -> None:
        """Waits until everything is written."""
        self._join()


class _ExecutorWriter(StandardWriter):
    """Its workers share an executor of one thread or process."""

    _executor: futures.Executor | None = None
    _worker_class: type[Worker]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_executor": None}

    def create_executor(self) -> futures.Executor:
        """The executor that runs the writes, one after the other."""
        raise NotImplementedError

    def create_worker(
        self, filename: str, outdir: str, target: object, **kwds: Any
    ) -> Worker:
        if self._executor is None:
            self._executor = self.create_executor()
        submit, path = self._executor.submit, os.path.join(outdir, filename)
        return self._worker_class(
            lambda: submit(
                CallOutcome, save_atomically, path, target, self._savefun, kwds
            )
        )

    def finalize(self) -> None:
        try:
            super().finalize()
        finally:
            if self._executor is not None:
                self._executor.shutdown()
                self._executor = None


class ThreadWriter(_ExecutorWriter):
    """Writes in a thread; a call waits for the previous write."""

    _worker_class = ThreadWorker

    def create_executor(self) -> futures.Executor:
        return futures.ThreadPoolExecutor(1, "snapshot")


class ProcessWriter(_ExecutorWriter):
    """Writes in a process; a call waits for the previous write.

    ``savefun`` and its arguments must be picklable.
    """

    _worker_class = ProcessWorker

    def create_executor(self) -> futures.Executor:
        return futures.ProcessPoolExecutor(1, _spawning())


def _not_written() -> RuntimeError:
    return RuntimeError(
        "snapshot: not written, because its process died or the task cannot be "
        f"pickled; the reason is above. {MAIN_GUARD}"
    )


def _spawning() -> Any:
    # A fork is not safe with threads and MPI.
    return multiprocessing.get_context("spawn")


def _copy(target: Any) -> Any:
    """A copy of named arrays, because training changes the originals."""
    if not isinstance(target, Mapping):
        return target
    return TakenState((key, numpy.array(value)) for key, value in target.items())


class QueueWriter(Writer):
    """Base of writers with a queue: a call never waits, so that copies may pile up.

    The exception of a write that failed is raised by a later call or at the end.

    Args:
        savefun: function of (path, target).
        task: called with (filename, outdir, target) instead; saves with ``savefun``
            unless given.
    """

    _NOT_COPIED = frozenset(
        ("_outcomes", "_queue", "_consumer", "_finalized", "_unknown", "_received")
    )

    def __init__(
        self, savefun: Callable[..., object] = npz.save_npz, task: object = None
    ) -> None:
        super().__init__()
        self._task = self.create_task(savefun) if task is None else task
        self._begin()

    def _begin(self) -> None:
        self._outcomes = self._create_outcomes()
        self._queue = self.create_queue()
        self._consumer = self.create_consumer(self._queue)
        self._consumer.start()
        self._finalized = False
        self._unknown = 0  # tasks whose outcomes were not received
        self._received: list[CallOutcome] = []

    def __getstate__(self) -> dict[str, Any]:
        """A copy has a queue and a consumer of its own."""
        own = vars(self).items()
        return {name: value for name, value in own if name not in self._NOT_COPIED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def create_task(self, savefun: Callable[..., object]) -> Writer:
        """What the consumer calls with (filename, outdir, target)."""
        return SimpleWriter(savefun)

    def create_queue(self) -> Any:
        """A queue with ``join()`` and ``task_done()``."""
        raise NotImplementedError

    def create_consumer(self, q: object) -> threading.Thread | BaseProcess:
        """A thread or process that runs ``consume(q)``."""
        raise NotImplementedError

    def _create_outcomes(self) -> Any:
        """A queue for what became of the tasks."""
        return queue.SimpleQueue()

    def __call__(self, filename: str, outdir: str, target: object) -> None:
        self._collect()
        self._unknown += 1
        self._queue.put([self._task, filename, outdir, _copy(target)])

    def consume(self, q: object) -> None:
        """Runs the tasks of a queue, up to None."""
        consume(q, self._outcomes)

    def _receive(self) -> None:
        while not self._outcomes.empty():
            self._received.append(self._outcomes.get())
            self._unknown -= 1

    def _collect(self) -> None:
        self._receive()
        while self._received:
            self._received.pop(0).get()
            self._post_save()

    def finalize(self) -> None:
        """Waits until everything is written."""
        if not self._finalized:
            self._finalized = True
            self._queue.put(None)
            self._wait()
        self._collect()

    def _wait(self) -> None:
        """Waits for the consumer, which has been told to end."""
        self._queue.join()
        self._consumer.join()


def consume(tasks: Any, outcomes: Any) -> None:
    """Runs the tasks of a queue, up to None, and tells what became of each."""
    while True:
        task = tasks.get()
        if task is not None:
            outcomes.put(CallOutcome(task[0], task[1], task[2], task[3]))
        tasks.task_done()
        if task is None:
            return


class ThreadQueueWriter(QueueWriter):
    """Writes in a thread; a call never waits, so that copies may pile up."""

    def create_queue(self) -> queue.Queue[object]:
        return queue.Queue()

    def create_consumer(self, q: object) -> threading.Thread:
        # A daemon: an error in the training loop must not keep the process alive.
        return threading.Thread(target=self.consume, args=(q,), daemon=True)


class ProcessQueueWriter(QueueWriter):
    """Writes in a process; a call never waits, so that copies may pile up.

    ``savefun`` or ``task`` must be picklable.
    """

    def create_queue(self) -> Any:
        return _spawning().JoinableQueue()

    def create_consumer(self, q: object) -> threading.Thread | BaseProcess:
        arguments = (q, self._outcomes)
        return _spawning().Process(target=consume, args=arguments, daemon=True)

    def _create_outcomes(self) -> Any:
        return _spawning().SimpleQueue()

    def _wait(self) -> None:
        while self._consumer.is_alive():  # until the last task, or it has died
            self._receive()
            self._consumer.join(_SECONDS_PER_WAIT)

    def finalize(self) -> None:
        super().finalize()
        if self._unknown > 0:
            self._unknown = 0
            raise _not_written()
