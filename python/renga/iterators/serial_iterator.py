"""Batches read one example after the other."""

from __future__ import annotations

from typing import Any, Callable

from renga.core.types import Array, Dataset
from renga.iterators.ordered_iterator import OrderedIterator


class SerialIterator(OrderedIterator):
    """Reads each batch on demand, in the caller's thread.

    ``shuffle`` (the default) draws a new order for every epoch; ``order_sampler`` gives
    the orders instead. With ``repeat`` off the iteration ends after one epoch.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        repeat: bool = True,
        shuffle: bool | None = None,
        order_sampler: Callable[[Array, int], Array] | None = None,
    ) -> None:
        super().__init__(dataset, batch_size, repeat, shuffle, order_sampler)

    def __next__(self) -> list[Any]:
        """The next batch, as a list of examples."""
        return [self.dataset[index] for index in self._advance()]
