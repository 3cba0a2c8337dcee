"""Batches read ahead of time, by several threads or in other ways."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

from renga.core.types import Array, Dataset
from renga.iterators.serial_iterator import OrderedIterator
from renga.utils.argument import check_count


class ReadAheadIterator(OrderedIterator):
    """Prefetches the next ``n_prefetch`` batches.

    A subclass's ``_submit`` starts reading examples and returns a future for each
    index: ``result()`` returns the example or raises the data set's exception. It keeps
    its threads or processes in ``_pool``, which ``close()`` ends.

    A copy, a pickle and a forked process's iterator continue with the same batches by
    threads or processes of their own.
    """

    _pool: Any = None
    _process: int | None = None
    _ahead: list[tuple[int, Any]]

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        repeat: bool,
        shuffle: bool | None,
        order_sampler: Callable[[Array, int], Array] | None,
        n_prefetch: int = 1,
    ) -> None:
        self.n_prefetch = max(n_prefetch, 0)
        self._forget()
        super().__init__(dataset, batch_size, repeat, shuffle, order_sampler)

    def __next__(self) -> list[Any]:
        """The next batch, as a list of examples; raises the data set's exceptions."""
        if self._process != os.getpid():
            self._forget()
        indices = self._advance()
        batch = self._take(indices)
        # Only as far as the order is known: drawing the next order now would leave the
        # generator in another state than a serial or a resumed iterator has.
        self._ahead = self._take(self._known_indices(self.n_prefetch))
        return [example.result() for _, example in batch]

    def finalize(self) -> None:
        """End the threads or processes and discard the prefetched examples."""
        pool = self._pool if self._process == os.getpid() else None
        self._forget()
        if pool is not None:
            pool.close()

    def __getstate__(self) -> dict[str, Any]:
        own = ("_pool", "_ahead", "_process")
        return {name: v for name, v in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def _forget(self) -> None:
        """Begins without threads, processes and prefetched examples."""
        self._pool = None
        self._ahead = []
        self._process = os.getpid()  # a forked one does not have the threads

    def _take(self, indices: list[int]) -> list[tuple[int, Any]]:
        """Futures of these examples: those already submitted, then new ones."""
        count = min(len(indices), len(self._ahead))
        taken, self._ahead = self._ahead[:count], self._ahead[count:]
        if [index for index, _ in taken] != indices[:count]:
            # After a reset or a resume the prefetched examples are not the next ones.
            taken, self._ahead = [], []
        missing = indices[len(taken) :]
        return taken + list(zip(missing, self._submit(missing)))

    def _submit(self, indices: list[int]) -> list[Any]:
        raise NotImplementedError


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
