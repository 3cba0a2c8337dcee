"""Batches of one stream that all ranks read together."""

from __future__ import annotations

from typing import Any

import numpy

from renga.communicators import Communicator
from renga.core.serializer import AbstractSerializer
from renga.core.types import Dataset
from renga.dataset import Iterator
from renga.utils.argument import check_count

_SEEDS = 1 << 32  # of NumPy's generator


class StreamIterator(Iterator):
    """Reads this rank's part of the stream of all epochs' examples.

    The stream is the data set in a new order for each epoch, which depends only on the
    seed and the number of the epoch. In an iteration, each of P ranks reads one of the
    next P batches, in rank order; at the end of an epoch they continue in the next
    one. So each epoch has every example once, even if the number of ranks changes in
    the middle of it.

    Args:
        dataset: the whole one, the same on all ranks.
        batch_size: of each rank.
        comm: the ranks.
        shuffle: whether each epoch has an order of its own.
        seed: of the orders.

    Raises:
        TypeError: the data set has no length.
        ValueError: ``batch_size`` is below 1, there are no examples, or the seed is
            not in [0, 2^32).
    """

    repeat = True

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        comm: Communicator,
        shuffle: bool = True,
        seed: int = 0,
    ) -> None:
        check_count("StreamIterator: batch_size", batch_size)
        check_count("StreamIterator: seed", seed, 0)
        if seed >= _SEEDS:
            raise ValueError(
                f"StreamIterator: seed: expected less than 2^32, got {seed}"
            )
        if not hasattr(dataset, "__len__"):
            raise TypeError(
                "StreamIterator: expected a data set with a length, got "
                f"{type(dataset).__name__}"
            )
        if len(dataset) == 0:
            raise ValueError("StreamIterator: expected an example or more, got none")
        self.dataset = dataset
        self.batch_size = batch_size
        self._comm = comm
        self._shuffle = shuffle
        self._seed = seed
        self._orders: dict[int, numpy.ndarray] = {}
        self.reset()

    @property
    def epoch(self) -> int:
        """How many epochs are complete."""
        return self._end // len(self.dataset)

    @property
    def is_new_epoch(self) -> bool:
        """Whether the last iteration completed an epoch."""
        return self._start // len(self.dataset) < self.epoch

    @property
    def epoch_detail(self) -> float:
        """The number of epochs with its fraction."""
        return self._end / len(self.dataset)

    @property
    def previous_epoch_detail(self) -> float | None:
        """``epoch_detail`` before the last iteration, None before the first."""
        return self._start / len(self.dataset) if self._end else None

    @property
    def current_position(self) -> int:
        """How many examples of this epoch all ranks have read."""
        return self._end % len(self.dataset)

    def reset(self) -> None:
        """Starts over, with the same orders."""
        self._start = self._end = 0

    def __next__(self) -> list[Any]:
        """This rank's next batch, as a list of examples."""
        self._start = self._end
        self._end += self._comm.size * self.batch_size
        first = self._start + self._comm.rank * self.batch_size
        positions = range(first, first + self.batch_size)
        return [self.dataset[self._index(position)] for position in positions]

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the position in the stream; it is the same on all ranks."""
        self._start = serializer("start", self._start)
        self._end = serializer("end", self._end)
        self._seed = serializer("seed", self._seed)
        self._orders.clear()

    def _index(self, position: int) -> int:
        epoch, i = divmod(position, len(self.dataset))
        if not self._shuffle:
            return i
        if epoch not in self._orders:
            # A batch reads two epochs at most unless it is larger than one.
            self._orders = {e: o for e, o in self._orders.items() if e == epoch - 1}
            random = numpy.random.RandomState([self._seed, epoch])
            self._orders[epoch] = random.permutation(len(self.dataset))
        return int(self._orders[epoch][i])
