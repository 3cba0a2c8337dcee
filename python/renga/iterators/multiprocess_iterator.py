"""Batches read by several processes, ahead of time."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import warnings
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Callable

from renga.core.types import Array, Dataset
from renga.iterators.multithread_iterator import ReadAheadIterator
from renga.utils.argument import check_count
from renga.utils.exceptions import CallOutcome

if TYPE_CHECKING:
    from renga.iterators.reading_processes import ReadingProcesses


class MultiprocessIterator(ReadAheadIterator):
    """Prefetches the next ``n_prefetch`` batches in worker processes.

    For data sets that compute in Python. The processes are spawned, never forked, so
    they are safe with threads, MPI and GPUs. The data set is pickled once, with its
    arrays in memory that all processes share. A script must therefore guard its start
    with ``if __name__ == "__main__"``.

    Args:
        n_processes: as many as there are cores unless given.
        n_prefetch: batches to read ahead, within an epoch.
        shared_mem: bytes of shared memory to begin with for each example; it grows
            if examples are larger.
        dataset_timeout: seconds to wait for an example before a TimeoutWarning.
        maxtasksperchild: tasks of a process before a new one replaces it; a task is
            a piece of a batch.

    The other arguments and the batches are those of ``SerialIterator``. The next batch
    raises the exception of the data set, or RuntimeError if a process died.
    """

    class TimeoutWarning(RuntimeWarning):
        """An example takes longer than ``dataset_timeout``."""

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        repeat: bool = True,
        shuffle: bool | None = None,
        n_processes: int | None = None,
        n_prefetch: int = 1,
        shared_mem: int | None = None,
        order_sampler: Callable[[Array, int], Array] | None = None,
        dataset_timeout: float | None = 30.0,
        maxtasksperchild: int | None = None,
    ) -> None:
        n_processes = n_processes or len(os.sched_getaffinity(0))
        check_count("MultiprocessIterator: n_processes", n_processes)
        self.n_processes = n_processes
        self.shuffle = shuffle
        self.dataset_timeout = dataset_timeout
        self.maxtasksperchild = maxtasksperchild
        self.shared_mem = shared_mem
        super().__init__(
            dataset, batch_size, repeat, shuffle, order_sampler, n_prefetch
        )

    _finalized = False

    def finalize(self) -> None:
        """Ends the processes; a batch that is asked for later starts them again."""
        self._finalized = True
        super().finalize()

    def reset(self) -> None:
        """Begins the first epoch again.

        Raises:
            NotImplementedError: ``finalize`` was called, as in Chainer.
        """
        if self._finalized:
            raise NotImplementedError(
                "MultiprocessIterator: expected reset() before finalize()"
            )
        super().reset()

    def __del__(self) -> None:
        # At interpreter shutdown modules may be gone; the processes then end by
        # themselves.
        with contextlib.suppress(Exception):
            self.finalize()

    def _submit(self, indices: list[int]) -> list[Any]:
        if not indices:
            return []
        if self._pool is None:
            # Imported late, because it is slow to import.
            from renga.iterators.reading_processes import ReadingProcesses

            self._pool = ReadingProcesses(self.dataset, self.n_processes)
        pool: ReadingProcesses = self._pool
        if self.maxtasksperchild and pool.tasks >= (
            self.maxtasksperchild * self.n_processes
        ):
            pool.renew()
        count = -(-len(indices) // self.n_processes)
        examples: list[Any] = []
        for start in range(0, len(indices), count):
            task = indices[start : start + count]
            future = pool.read(task, (self.shared_mem or 0) * len(task))
            timeout = self.dataset_timeout
            examples += [_Example(future, k, timeout) for k in range(len(task))]
        return examples


class _Example:
    """One of several examples that a process is reading."""

    def __init__(
        self, future: Future[list[CallOutcome]], position: int, timeout: float | None
    ) -> None:
        self.future = future
        self.position = position
        self.timeout = timeout

    def result(self) -> Any:
        return self._wait()[self.position].get()

    def _wait(self) -> list[CallOutcome]:
        try:
            return self.future.result(self.timeout)
        except concurrent.futures.TimeoutError:
            if self.future.done():
                raise  # raised by the data set itself
            warnings.warn(
                f"MultiprocessIterator: no example came in {self.timeout} s; is a "
                "process stuck?",
                MultiprocessIterator.TimeoutWarning,
                stacklevel=2,
            )
            return self.future.result()
