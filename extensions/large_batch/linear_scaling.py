"""A learning rate proportional to the batch size."""

from __future__ import annotations

from renga.core.optimizer import Optimizer
from renga.core.serializer import AbstractSerializer
from renga.extensions.large_batch.epoch_schedule import EpochSchedule
from renga.extensions.shifts.hyperparameter_shift import KeptHyperparameter
from renga.training.trainer import Trainer


class LinearScaling(EpochSchedule):
    """Raises a learning rate from ``base`` to ``base * factor`` in the first epochs.

    ``factor`` is the total batch size of all ranks over the one for which ``base`` was
    chosen. After the warm-up it does not change the rate, so another schedule can.

    Args:
        attr: name of the hyperparameter.
        base: its value for the small batch.
        factor: of the batch.
        epochs: length of the warm-up.
        optimizer: the main optimizer of the updater unless given.

    Source: Goyal et al., arXiv:1706.02677.
    """

    def __init__(
        self,
        attr: str,
        base: float,
        factor: float,
        epochs: float = 5,
        optimizer: Optimizer | None = None,
    ) -> None:
        super().__init__(optimizer)
        self._attr = attr
        self._base = base
        self._factor = factor
        self._epochs = epochs
        self._arrived = False
        self._kept = KeptHyperparameter(attr)

    def initialize(self, trainer: Trainer) -> None:
        super().initialize(trainer)
        self._kept.initialize(self.optimizer_of(trainer))

    def act(self, trainer: Trainer, epoch: float) -> None:
        if self._arrived:
            return
        self._arrived = epoch >= self._epochs
        way = 1.0 if self._arrived else epoch / self._epochs
        rate = self._base * (1 + way * (self._factor - 1))
        setattr(self.optimizer_of(trainer), self._attr, rate)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads whether the warm-up is over, and the rate."""
        self._arrived = serializer("arrived", self._arrived)
        self._kept.serialize(serializer)
