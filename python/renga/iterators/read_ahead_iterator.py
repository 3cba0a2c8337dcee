"""Reading examples before they are asked for."""

from __future__ import annotations

from typing import Any, Callable

from renga.iterators.ordered_iterator import OrderedIterator


class ReadAheadIterator(OrderedIterator):
    """Has the next ``n_prefetch`` batches read while this one is in use.

    A leaf's ``_submit`` starts to read examples and gives, for each index, something
    whose ``result()`` is the example or raises what the data set raised.
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
        """The next batch, as a list of examples; raises what the data set raised."""
        indices = self._advance()
        batch = self._take(indices)
        # Only as far as the order is known: to draw the next one now would not leave
        # the generator where a serial iterator, or a resumed one, has it.
        self._ahead = self._take(self._known_indices(self.n_prefetch))
        return [example.result() for _, example in batch]

    def finalize(self) -> None:
        """Forget what was read ahead."""
        self._ahead = []

    def _take(self, indices: list[int]) -> list[tuple[int, Any]]:
        """These examples: those that are being read already, then new ones."""
        count = min(len(indices), len(self._ahead))
        taken, self._ahead = self._ahead[:count], self._ahead[count:]
        if [index for index, _ in taken] != indices[:count]:
            # After a reset or a resume, what was read ahead is not what comes.
            taken, self._ahead = [], []
        missing = indices[len(taken) :]
        return taken + list(zip(missing, self._submit(missing)))

    def _submit(self, indices: list[int]) -> list[Any]:
        raise NotImplementedError
