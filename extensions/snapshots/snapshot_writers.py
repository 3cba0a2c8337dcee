"""Writers of snapshots: synchronous and in the background."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy

from renga.serializer import AbstractSerializer
from renga.serializers import npz
from renga.serializers.atomic import atomic_write

if TYPE_CHECKING:
    from concurrent import futures


class State(dict[str, Any]):
    """Named arrays that are serialized like the object they were copied from."""

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves every array under its name."""
        for key, value in self.items():
            serializer(key, value)


class Writer:
    """Base of writers, which are called with (filename, outdir, target)."""

    def __init__(self) -> None:
        self._post_save_hooks: list[Callable[[], Any]] = []

    def __call__(self, filename: str, outdir: str, target: Any) -> None:
        """Writes ``target`` to the file called ``filename`` in ``outdir``."""
        raise NotImplementedError

    def finalize(self) -> None:
        """Waits until everything is written."""

    def save(
        self,
        filename: str,
        outdir: str,
        target: Any,
        savefun: Callable[..., Any],
        **kwds: Any,
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
    path: str, target: Any, savefun: Callable[..., Any], kwds: Mapping[str, Any]
) -> None:
    """Calls ``savefun`` so that ``path`` is replaced atomically."""
    if type(target) is dict:
        target = State(target)
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

    def __init__(self, savefun: Callable[..., Any] = npz.save_npz, **kwds: Any) -> None:
        super().__init__()
        self._savefun = savefun
        self._kwds = kwds

    def __call__(self, filename: str, outdir: str, target: Any) -> None:
        self.save(filename, outdir, target, self._savefun, **self._kwds)


class _BackgroundWriter(SimpleWriter):
    """Writes copies in the background, in the order of the calls.

    The exception of a write that failed is raised by a later call or at the end.
    """

    _waits = False  # whether a call waits for the previous write

    def __init__(self, savefun: Callable[..., Any] = npz.save_npz, **kwds: Any) -> None:
        super().__init__(savefun, **kwds)
        self._executor: futures.Executor | None = None
        self._pending: list[futures.Future[None]] = []

    def create_executor(self) -> futures.Executor:
        """The executor that runs the writes, one after the other."""
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(1, "snapshot")

    def __call__(self, filename: str, outdir: str, target: Any) -> None:
        while self._pending and (self._waits or self._pending[0].done()):
            self._collect()
        if self._executor is None:
            self._executor = self.create_executor()
        path = os.path.join(outdir, filename)
        job = self._executor.submit(
            save_atomically, path, _copy(target), self._savefun, self._kwds
        )
        self._pending.append(job)

    def _collect(self) -> None:
        self._pending.pop(0).result()
        self._post_save()

    def finalize(self) -> None:
        """Waits until everything is written."""
        try:
            while self._pending:
                self._collect()
        finally:
            if self._executor is not None:
                self._executor.shutdown()
                self._executor = None


def _process_executor() -> futures.Executor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # A fork is not safe with threads and MPI.
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))


def _copy(target: Any) -> Any:
    """A copy of named arrays, because training changes the originals."""
    if not isinstance(target, Mapping):
        return target
    return State((key, numpy.array(value)) for key, value in target.items())


class StandardWriter(_BackgroundWriter):
    """Writes in the background; a call waits for the previous write."""

    _waits = True


class ThreadWriter(StandardWriter):
    """Writes in a thread; a call waits for the previous write."""


class ProcessWriter(StandardWriter):
    """Writes in a process; a call waits for the previous write.

    ``savefun`` and its arguments must be picklable.
    """

    def create_executor(self) -> futures.Executor:
        return _process_executor()


class QueueWriter(_BackgroundWriter):
    """Writes in the background; a call never waits, so that copies may pile up."""


class ThreadQueueWriter(QueueWriter):
    """Writes in a thread; a call never waits, so that copies may pile up."""


class ProcessQueueWriter(QueueWriter):
    """Writes in a process; a call never waits, so that copies may pile up.

    ``savefun`` and its arguments must be picklable.
    """

    def create_executor(self) -> futures.Executor:
        return _process_executor()
