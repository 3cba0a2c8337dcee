"""Prefetching of examples."""

from __future__ import annotations

from typing import Any, Callable

from renga.iterators.ordered_iterator import OrderedIterator


class ReadAheadIterator(OrderedIterator):
    """Prefetches the next ``n_prefetch`` batches.

    A subclass's ``_submit`` starts reading examples and returns a future for each
    index: ``result()`` returns the example or raises the data set's exception.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool,
        shuffle: bool | None,
        order_sampler: Callable[[Any, int], Any] | None,
        n_prefetch: int = 1,
    ) -> None:
        self.n_prefetch = max(n_prefetch, 0)
        self._ahead: list[tuple[int, Any]] = []
        super().__init__(dataset, batch_size, repeat, shuffle, order_sampler)

    def __next__(self) -> list[Any]:
        """The next batch, as a list of examples; raises the data set's exceptions."""
        indices = self._advance()
        batch = self._take(indices)
        # Only as far as the order is known: drawing the next order now would leave the
        # generator in another state than a serial or a resumed iterator has.
        self._ahead = self._take(self._known_indices(self.n_prefetch))
        return [example.result() for _, example in batch]

    def finalize(self) -> None:
        """Discard the prefetched examples."""
        self._ahead = []

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
