"""Batches read by several processes, ahead of time."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import pickle
import signal
import warnings
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.shared_memory import SharedMemory
from typing import Any, Callable

from renga import _core
from renga.iterators import shared_pickle
from renga.iterators.read_ahead_iterator import ReadAheadIterator
from renga.iterators.shared_pickle import SharedPickle


class MultiprocessIterator(ReadAheadIterator):
    """Reads the next ``n_prefetch`` batches in processes while this one is in use.

    For data sets that compute in Python. The processes are started anew, never
    forked, so that they are safe beside threads, MPI and GPUs; the data set is
    pickled once, and its arrays lie in memory that all processes share. A script must
    therefore guard its start with ``if __name__ == "__main__"``.

    Args:
        n_processes: as many as there are cores unless given.
        n_prefetch: batches to read ahead, within an epoch.
        shared_mem: bytes of shared memory to begin with for each example; it grows
            where examples turn out larger.
        dataset_timeout: seconds to wait for an example before a TimeoutWarning.
        maxtasksperchild: parts of batches that a process reads before a new one
            takes its place.

    The other arguments are those of ``SerialIterator``, and so are the batches. The
    next batch raises what the data set raised, and RuntimeError if a process died.
    """

    class TimeoutWarning(RuntimeWarning):
        """An example is a long time coming."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool = True,
        shuffle: bool | None = None,
        n_processes: int | None = None,
        n_prefetch: int = 1,
        shared_mem: int | None = None,
        order_sampler: Callable[[Any, int], Any] | None = None,
        dataset_timeout: float | None = 30.0,
        maxtasksperchild: int | None = None,
    ) -> None:
        self.n_processes = n_processes or len(os.sched_getaffinity(0))
        self.dataset_timeout = dataset_timeout
        self.maxtasksperchild = maxtasksperchild
        self.shared_mem = shared_mem
        self._pool: _Pool | None = None
        super().__init__(
            dataset, batch_size, repeat, shuffle, order_sampler, n_prefetch
        )

    def finalize(self) -> None:
        """End the processes and free the shared memory."""
        super().finalize()
        if self._pool is not None:
            self._pool.close()
        self._pool = None

    def __del__(self) -> None:
        # At the interpreter's end the modules may be gone; the processes end by
        # themselves then.
        with contextlib.suppress(Exception):
            self.finalize()

    def _submit(self, indices: list[int]) -> list[Any]:
        if not indices:
            return []
        if self._pool is None:
            self._pool = _Pool(self.dataset, self.n_processes)
        pool = self._pool
        if self.maxtasksperchild and pool.tasks >= (
            self.maxtasksperchild * self.n_processes
        ):
            pool.renew()
        count = -(-len(indices) // self.n_processes)
        examples: list[Any] = []
        for start in range(0, len(indices), count):
            part = indices[start : start + count]
            read = pool.read(part, (self.shared_mem or 0) * len(part))
            examples += [self._example(read, k) for k in range(len(part))]
        return examples

    def _example(self, part: Future[list[Any]], position: int) -> _Example:
        return _Example(part, position, self.dataset_timeout)


class _Example:
    """One of several examples that a process is reading."""

    def __init__(
        self, part: Future[list[Any]], position: int, timeout: float | None
    ) -> None:
        self.part = part
        self.position = position
        self.timeout = timeout

    def result(self) -> Any:
        try:
            return self._wait()[self.position]
        except BrokenProcessPool:
            raise RuntimeError(
                "MultiprocessIterator: a process that read examples died; it may have "
                "run out of memory"
            ) from None

    def _wait(self) -> list[Any]:
        try:
            return self.part.result(self.timeout)
        except concurrent.futures.TimeoutError:
            if self.part.done():
                raise  # the data set's own
            warnings.warn(
                f"MultiprocessIterator: no example came in {self.timeout} s; is a "
                "process stuck?",
                MultiprocessIterator.TimeoutWarning,
                stacklevel=2,
            )
            return self.part.result()


class _Pool:
    """Processes that read a data set, and the memory they hand examples over in."""

    def __init__(self, dataset: Any, n_processes: int) -> None:
        self.n_processes = n_processes
        self._free: deque[SharedMemory] = deque()
        self._blocks: list[SharedMemory] = []
        size = shared_pickle.write(dataset, None, _dumps()).size
        self._dataset_block = self._allocate(size)
        self._dataset = shared_pickle.write(dataset, self._dataset_block, _dumps())
        self._start()

    def read(self, indices: list[int], size: int) -> Future[list[Any]]:
        """The examples, as one process reads them, in a block of ``size`` bytes."""
        self.tasks += 1
        block = self._free.popleft() if self._free else self._allocate(size)
        examples: Future[list[Any]] = Future()
        task = self._executor.submit(_read, indices, block.name)
        task.add_done_callback(functools.partial(self._receive, examples, block))
        return examples

    def renew(self) -> None:
        """Has new processes take over when these have read what they were given."""
        self._executor.shutdown(wait=False)
        self._start()

    def close(self) -> None:
        self._executor.shutdown(cancel_futures=True)
        for block in self._blocks:
            _free(block)

    def _start(self) -> None:
        self.tasks = 0
        self._executor = ProcessPoolExecutor(
            self.n_processes,
            multiprocessing.get_context("spawn"),
            _open_dataset,
            (self._dataset, self._dataset_block.name),
        )

    def _allocate(self, size: int) -> SharedMemory:
        block = SharedMemory(create=True, size=max(size, 1))
        self._blocks.append(block)
        return block

    def _receive(
        self,
        examples: Future[list[Any]],
        block: SharedMemory,
        task: Future[SharedPickle],
    ) -> None:
        if task.cancelled():
            examples.cancel()
        elif task.exception() is not None:
            self._free.append(block)
            examples.set_exception(task.exception())
        else:
            written = task.result()
            examples.set_result(shared_pickle.read(written, block))
            if written.inline is not None:
                self._blocks.remove(block)
                _free(block)
                block = self._allocate(written.size)
            self._free.append(block)


def _free(block: SharedMemory) -> None:
    block.close()
    block.unlink()


def _dumps() -> Callable[..., bytes]:
    # It pickles functions that have no name, too.
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps
    return cloudpickle.dumps


# What follows runs in the processes that read.

_dataset: Any = None
_open_block = functools.lru_cache(maxsize=None)(SharedMemory)


def _open_dataset(written: SharedPickle, block: str) -> None:
    global _dataset
    # An interrupt is for the process that trains; it ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _core.set_num_threads(1)
    _dataset = shared_pickle.read(written, _open_block(block), copy=False)


def _read(indices: list[int], block: str) -> SharedPickle:
    examples = [_dataset[index] for index in indices]
    return shared_pickle.write(examples, _open_block(block))
