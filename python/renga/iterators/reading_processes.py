"""Worker processes that read examples, and the shared memory for the results."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import multiprocessing.connection
import operator
import os
import signal
import threading
from collections import deque
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from typing import Any

from renga import _core
from renga.core.types import Dataset
from renga.iterators.shared_block import (
    Handle,
    SharedBlock,
    SharedPickle,
    open_block,
    read_pickle,
    write_pickle,
)
from renga.utils import pickling
from renga.utils.exceptions import MAIN_GUARD, CallOutcome


class ReadingProcesses:
    """Worker processes that read a data set into shared memory."""

    def __init__(self, dataset: Dataset, n_processes: int) -> None:
        self.n_processes = n_processes
        self._free: deque[SharedBlock] = deque()
        self._blocks: list[SharedBlock] = []
        # Its byte is set by a process that begins to work.
        self._beginning = self._allocate(1)
        write = functools.partial(write_pickle, dumps=pickling.dumps)
        self._dataset_block = self._allocate(write(dataset, None).size)
        self._dataset = write(dataset, self._dataset_block.buf)
        self._start()

    def read(self, indices: list[int], size: int) -> Future[list[CallOutcome]]:
        """The examples, as one process reads them, in a block of ``size`` bytes.

        They may be of several batches, so each has an exception of its own.
        """
        self.tasks += 1
        block = self._free.popleft() if self._free else self._allocate(size)
        examples: Future[list[CallOutcome]] = Future()
        try:
            task = self._executor.submit(_read, indices, block.handle)
        except BrokenExecutor:
            self._free.append(block)
            raise RuntimeError(self._reason_of_death()) from None
        task.add_done_callback(functools.partial(self._receive, examples, block))
        return examples

    def renew(self) -> None:
        """Has new processes take over when these have read what they were given."""
        self._executor.shutdown(wait=False)
        self._start()

    def close(self) -> None:
        """Ends the processes and frees the memory."""
        self._executor.shutdown(cancel_futures=True)
        for block in self._blocks:
            block.close()

    def _start(self) -> None:
        self.tasks = 0
        self._executor = ProcessPoolExecutor(
            self.n_processes,
            multiprocessing.get_context("spawn"),
            _begin,
            (self._beginning.handle, self._dataset, self._dataset_block.handle),
        )

    def _allocate(self, size: int) -> SharedBlock:
        block = SharedBlock(size)
        self._blocks.append(block)
        return block

    def _receive(
        self,
        examples: Future[list[CallOutcome]],
        block: SharedBlock,
        task: Future[CallOutcome],
    ) -> None:
        if task.cancelled():
            examples.cancel()
            return
        try:
            written: SharedPickle = task.result().get()
            if written.inline is not None:
                block = self._replace(block, written.size)
            examples.set_result(read_pickle(written, block.buf))
        except BrokenExecutor:
            examples.set_exception(RuntimeError(self._reason_of_death()))
        except BaseException as error:
            examples.set_exception(error)
        self._free.append(block)

    def _replace(self, block: SharedBlock, size: int) -> SharedBlock:
        """A larger block for the next examples, if there is memory for it."""
        with contextlib.suppress(OSError):
            larger = self._allocate(size)
            self._blocks.remove(block)
            block.close()
            return larger
        return block

    def _reason_of_death(self) -> str:
        if self._beginning.buf[0]:
            reason = "a process that read examples died; it may have run out of memory"
        else:
            reason = (
                "its processes died before they could read; what they wrote is above. "
                f"{MAIN_GUARD}"
            )
        return f"MultiprocessIterator: {reason}"


# The functions below run in the worker processes.

_dataset: Any = None
_blocks: dict[int, tuple[Handle, memoryview]] = {}  # by descriptor


def _begin(beginning: Handle, written: SharedPickle, block: Handle) -> None:
    global _dataset
    # The training process handles interrupts, and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _core.set_num_threads(1)
    # The examples raise what this raises.
    _dataset = CallOutcome(read_pickle, written, _open(block), copy=False)
    _open(beginning)[0] = 1


def _end_with_parent() -> None:
    """Ends this process with the training process, also if that is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def _open(handle: Handle) -> memoryview:
    opened = _blocks.get(handle.file)
    if opened is None or opened[0] != handle:
        opened = _blocks[handle.file] = handle, open_block(handle)
    return opened[1]


def _read(indices: list[int], block: Handle) -> CallOutcome:
    return CallOutcome(_examples, indices, _open(block))


def _examples(indices: list[int], block: memoryview) -> SharedPickle:
    dataset = _dataset.get()
    examples = [CallOutcome(operator.getitem, dataset, index) for index in indices]
    try:
        return write_pickle(examples, block)
    except Exception:  # of classes that pickle cannot find by their names
        return write_pickle(examples, block, pickling.dumps)
