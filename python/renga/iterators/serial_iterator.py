"""Batches of examples in an order, read one after the other."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, NamedTuple, Optional

import numpy

from renga.core.serializer import AbstractSerializer
from renga.core.types import Array, Dataset
from renga.dataset import Iterator
from renga.iterators.order_samplers import ShuffleOrderSampler
from renga.utils.argument import check_count

Order = Optional[numpy.ndarray]


class _State(NamedTuple):
    position: int
    epoch: int
    is_new_epoch: bool
    order: Order


class OrderedIterator(Iterator):
    """Steps through the orders of a sampler, ``batch_size`` indices at a time.

    A batch at the end of an epoch continues in the next one; with ``repeat`` off it is
    the last and may be shorter.

    Raises:
        ValueError: both ``shuffle`` and ``order_sampler`` are given, or ``batch_size``
            is below 1.
    """

    _order_key = "order"

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        repeat: bool = True,
        shuffle: bool | None = None,
        order_sampler: Callable[[Array, int], Array] | None = None,
    ) -> None:
        check_count(f"{type(self).__name__}: batch_size", batch_size)
        if order_sampler is not None and shuffle is not None:
            raise ValueError(
                f"{type(self).__name__}: expected shuffle=None with an order_sampler, "
                f"got shuffle={shuffle}"
            )
        if order_sampler is None and shuffle is not False:
            order_sampler = ShuffleOrderSampler()
        self.dataset = dataset
        self.batch_size = batch_size
        self.order_sampler = order_sampler
        self._repeat = repeat
        self._shuffle = shuffle is not False
        self.reset()

    @property
    def repeat(self) -> bool:
        """Whether the iteration never ends."""
        return self._repeat

    @property
    def current_position(self) -> int:
        """The number of examples of this epoch that were returned."""
        return self._state.position

    @property
    def epoch(self) -> int:
        """How many epochs are complete."""
        return self._state.epoch

    @property
    def is_new_epoch(self) -> bool:
        """Whether the last batch completed an epoch."""
        return self._state.is_new_epoch

    @property
    def epoch_detail(self) -> float:
        """The number of epochs with its fraction."""
        return self.epoch + self.current_position / max(self._epoch_size, 1)

    @property
    def previous_epoch_detail(self) -> float | None:
        """``epoch_detail`` before the last batch, None before the first."""
        return None if self._previous_epoch_detail < 0 else self._previous_epoch_detail

    def reset(self) -> None:
        """Start over, in a new order."""
        order = None
        if self.order_sampler is not None:
            order = self.order_sampler(numpy.arange(len(self.dataset)), 0)
            order = None if order is None else numpy.asarray(order)
        self._state = _State(0, 0, False, order)
        self._previous_epoch_detail = -1.0

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Save or load the position, the order and, if it has one, the sampler's state.

        A resumed iterator continues with the same examples as an uninterrupted one. A
        file without the sampler's state leaves it unchanged; those of other versions
        and iterators may name the order differently and lack the last position.
        """
        state = self._state
        order = state.order
        # Before the position, of which a file of other ranks needs the length.
        if order is not None:
            order = self._serialize_order(serializer, numpy.array(order))
        else:
            with contextlib.suppress(KeyError):  # a file of 0.1.0 or of Chainer
                serializer("dataset_size", len(self.dataset))
        position = serializer("current_position", state.position)
        epoch = serializer("epoch", state.epoch)
        is_new_epoch = serializer("is_new_epoch", state.is_new_epoch)
        self._state = _State(position, epoch, is_new_epoch, order)
        try:
            self._previous_epoch_detail = serializer(
                "previous_epoch_detail", self._previous_epoch_detail
            )
        except KeyError:
            before = self.epoch_detail - self.batch_size / max(self._epoch_size, 1)
            self._previous_epoch_detail = (
                max(before, 0.0) if self.epoch_detail > 0 else -1.0
            )
        serialize_sampler = getattr(self.order_sampler, "serialize", None)
        if serialize_sampler is not None:
            # A file without the state, or a serializer of flat names.
            with contextlib.suppress(KeyError, NotImplementedError):
                serialize_sampler(serializer["order_sampler"])

    def _serialize_order(self, serializer: Any, order: numpy.ndarray) -> Any:
        try:
            return serializer(self._order_key, order)
        except KeyError:
            other = "_order" if self._order_key == "order" else "order"
            return serializer(other, order)

    @property
    def _epoch_size(self) -> int:
        order = self._state.order
        return len(self.dataset) if order is None else len(order)

    def _known_indices(self, batches: int = 1) -> list[int]:
        """The next indices that are already known: up to the end of this epoch."""
        if self.epoch > 0 and not self._repeat:
            return []
        length = batches * self.batch_size
        return self._slice(self._state.order, self.current_position, length)

    def _advance(self) -> list[int]:
        """The indices of the next batch; StopIteration after the last."""
        size = self._epoch_size
        if self._repeat and size == 0:
            raise ValueError(
                f"{type(self).__name__}: expected at least one example to repeat, got 0"
            )
        if not self._repeat and (self.epoch > 0 or size == 0):
            self._previous_epoch_detail = self.epoch_detail
            raise StopIteration
        indices = self._known_indices()
        start, epoch, _, order = self._state
        position = start + len(indices)
        while position == size:
            order = self._next_order(order, start)
            epoch += 1
            start = position = 0
            if self._repeat:
                more = self._slice(order, 0, self.batch_size - len(indices))
                indices += more
                position = len(more)
        self._previous_epoch_detail = self.epoch_detail
        self._state = _State(position, epoch, epoch > self.epoch, order)
        return indices

    def _slice(self, order: Order, start: int, length: int) -> list[int]:
        if order is None:
            return list(range(start, min(start + length, len(self.dataset))))
        return order[start : start + length].tolist()

    def _next_order(self, order: Order, position: int) -> Order:
        if order is None or self.order_sampler is None:
            return None
        new_order = numpy.asarray(self.order_sampler(order, position))
        if len(new_order) != len(order):
            raise ValueError(
                f"{type(self).__name__}: expected an order of {len(order)} indices "
                f"from order_sampler, got {len(new_order)}"
            )
        return new_order


class SerialIterator(OrderedIterator):
    """Reads each batch on demand, in the caller's thread.

    ``shuffle`` (the default) draws a new order for every epoch; ``order_sampler`` gives
    the orders instead. With ``repeat`` off the iteration ends after one epoch.
    """

    def __next__(self) -> list[Any]:
        """The next batch, as a list of examples."""
        return [self.dataset[index] for index in self._advance()]
