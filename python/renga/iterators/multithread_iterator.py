"""Batches read by several threads, ahead of time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

from renga.core.types import Array, Dataset
from renga.iterators.read_ahead_iterator import ReadAheadIterator
from renga.utils.argument import check_count


class MultithreadIterator(ReadAheadIterator):
    """Prefetches the next batch in ``n_threads`` threads.

    For data sets that wait for a disk or release the interpreter's lock. The
    arguments and the batches are those of ``SerialIterator``.
    """

    _order_key = "_order"  # the name in Chainer's snapshots

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        repeat: bool = True,
        shuffle: bool | None = None,
        n_threads: int = 1,
        order_sampler: Callable[[Array, int], Array] | None = None,
    ) -> None:
        check_count("MultithreadIterator: n_threads", n_threads)
        self.n_threads = n_threads
        super().__init__(dataset, batch_size, repeat, shuffle, order_sampler)

    def _submit(self, indices: list[int]) -> list[Any]:
        if self._pool is None:
            self._pool = _Threads(self.n_threads, "MultithreadIterator")
        read = self.dataset.__getitem__
        return [self._pool.submit(read, index) for index in indices]


class _Threads(ThreadPoolExecutor):
    def close(self) -> None:
        """Ends the threads."""
        self.shutdown(cancel_futures=True)
