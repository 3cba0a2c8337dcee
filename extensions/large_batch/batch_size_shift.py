"""A batch size that grows where a learning rate would decay."""

from __future__ import annotations

from collections.abc import Sequence

from renga.extensions.large_batch.epoch_schedule import EpochSchedule
from renga.training.trainer import Trainer


class BatchSizeShift(EpochSchedule):
    """Multiplies the main iterator's batch size by ``factor`` at each of ``epochs``.

    Args:
        factor: of the batch size, which is rounded.
        epochs: when.

    Source: Smith, Kindermans, Ying and Le, ICLR 2018.
    """

    def __init__(self, factor: float, epochs: Sequence[float]) -> None:
        super().__init__()
        self._factor = factor
        self._epochs = list(epochs)
        self._first: int | None = None

    def act(self, trainer: Trainer, epoch: float) -> None:
        iterator = trainer.updater.get_iterator("main")
        if self._first is None:
            self._first = iterator.batch_size
        passed = sum(epoch >= point for point in self._epochs)
        iterator.batch_size = round(self._first * self._factor**passed)
