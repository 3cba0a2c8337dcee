"""Worker processes that read examples, and the shared memory for the results."""

from __future__ import annotations

import functools
import multiprocessing
import pickle
import signal
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.shared_memory import SharedMemory
from typing import Any, Callable

from renga import _core
from renga.iterators import shared_pickle
from renga.iterators.shared_pickle import SharedPickle


class ReadingProcesses:
    """Worker processes that read a data set into shared memory."""

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
    # cloudpickle also pickles lambdas.
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps
    return cloudpickle.dumps


# The functions below run in the worker processes.

_dataset: Any = None
_open_block = functools.lru_cache(maxsize=None)(SharedMemory)


def _open_dataset(written: SharedPickle, block: str) -> None:
    global _dataset
    # The training process handles interrupts, and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _core.set_num_threads(1)
    _dataset = shared_pickle.read(written, _open_block(block), copy=False)


def _read(indices: list[int], block: str) -> SharedPickle:
    examples = [_dataset[index] for index in indices]
    return shared_pickle.write(examples, _open_block(block))
