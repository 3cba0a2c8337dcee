"""Iterators that take their examples in the same order on every rank."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy

from renga.communicators import Communicator
from renga.core.serializer import AbstractSerializer
from renga.dataset.iterator import Iterator
from renga.iterators import OrderSampler, ShuffleOrderSampler

_Iterator = TypeVar("_Iterator", bound=Iterator)


def create_synchronized_iterator(
    actual_iterator: _Iterator, communicator: Communicator
) -> _Iterator:
    """Makes ``actual_iterator`` take its examples in the same order on every rank.

    Every rank has its own data, all of one length. The order is that of rank 0's
    sampler; one that draws from NumPy's global generator is replaced by one with a
    common generator, whose seed is ChainerMN's. Each rank's iterator is reset.

    Returns:
        ``actual_iterator``.

    Raises:
        ValueError: the iterator has no order sampler to set.
    """
    if not hasattr(actual_iterator, "order_sampler"):
        raise ValueError(
            "create_synchronized_iterator: expected an iterator with an order_sampler, "
            f"got {type(actual_iterator).__name__}"
        )
    iterator: Any = actual_iterator
    sampler = iterator.order_sampler
    if communicator.rank == 0 and _draws_globally(sampler):
        seed = numpy.random.randint(0, 2**32 - 1, dtype=numpy.int64)
        sampler = ShuffleOrderSampler(numpy.random.RandomState(seed))
    sampler = communicator.bcast_obj(sampler)
    iterator.order_sampler = None if sampler is None else CommonOrderSampler(sampler)
    iterator.reset()
    return actual_iterator


class CommonOrderSampler(OrderSampler):
    """A sampler that every rank has, with one state.

    In files, the state has a key by which ranks that did not exist before take it over.
    """

    KEY = "common"

    def __init__(self, sampler: OrderSampler) -> None:
        self.sampler = sampler

    def __call__(
        self, current_order: numpy.ndarray, current_position: int
    ) -> numpy.ndarray | None:
        """The order that the sampler gives."""
        return self.sampler(current_order, current_position)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the sampler's state, if it has one."""
        if not hasattr(self.sampler, "serialize"):
            return
        try:
            self.sampler.serialize(serializer[self.KEY])
        except KeyError:  # a file of a sampler that is not common
            self.sampler.serialize(serializer)


def _draws_globally(sampler: Any) -> bool:
    return isinstance(sampler, ShuffleOrderSampler) and sampler.draws_globally
