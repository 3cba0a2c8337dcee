"""Iterators whose ranks take their examples in one order."""

from __future__ import annotations

from typing import Any

import numpy

from renga.iterators import ShuffleOrderSampler


def create_synchronized_iterator(actual_iterator: Any, communicator: Any) -> Any:
    """Makes ``actual_iterator`` take its examples in the same order on every rank.

    Every rank needs data of its own, of one length. The order is that of rank 0's
    sampler; where that draws from NumPy's global generator, it draws from one that
    the ranks have in common. Each rank starts over.

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
    sampler = actual_iterator.order_sampler
    if communicator.rank == 0 and _draws_globally(sampler):
        seed = numpy.random.randint(2**31)
        sampler = ShuffleOrderSampler(numpy.random.RandomState(seed))
    actual_iterator.order_sampler = communicator.bcast_obj(sampler)
    actual_iterator.reset()
    return actual_iterator


def _draws_globally(sampler: Any) -> bool:
    is_shuffle = isinstance(sampler, ShuffleOrderSampler)
    return is_shuffle and sampler._random is ShuffleOrderSampler()._random
