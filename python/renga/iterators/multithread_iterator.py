"""Batches read by several threads, ahead of time."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable

from renga.iterators.ordered_iterator import OrderedIterator


class MultithreadIterator(OrderedIterator):
    """Reads the next batch in ``n_threads`` threads while this one is in use.

    For data sets that wait for a disk or release the interpreter's lock. The
    arguments are those of ``SerialIterator``, and so are the batches.
    """

    _order_key = "_order"  # the name in Chainer's snapshots

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool = True,
        shuffle: bool | None = None,
        n_threads: int = 1,
        order_sampler: Callable[[Any, int], Any] | None = None,
    ) -> None:
        self.n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None
        self._ahead: list[tuple[int, Future[Any]]] = []
        super().__init__(dataset, batch_size, repeat, shuffle, order_sampler)

    def __next__(self) -> list[Any]:
        """The next batch, as a list of examples; raises what the data set raised."""
        indices = self._advance()
        batch = self._ahead
        # After a reset or a resume, what was read ahead is not what comes.
        if [index for index, _ in batch] != indices[: len(batch)]:
            batch = []
        batch = batch + self._submit(indices[len(batch) :])
        # Only as far as the order is known: to draw the next one now would not leave
        # the generator where a serial iterator, or a resumed one, has it.
        self._ahead = self._submit(self._known_indices())
        return [example.result() for _, example in batch]

    def finalize(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._pool = None
        self._ahead = []

    def _submit(self, indices: list[int]) -> list[tuple[int, Future[Any]]]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads, "MultithreadIterator")
        read = self.dataset.__getitem__
        return [(index, self._pool.submit(read, index)) for index in indices]
