"""Schedules for training with very large batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from renga.core.optimizer import Optimizer
from renga.core.serializer import AbstractSerializer
from renga.extensions.shifts.hyperparameter_shift import KeptHyperparameter
from renga.training import extension
from renga.training.trainer import Trainer


class EpochSchedule(extension.Extension):
    """Base of schedules that depend only on the number of epochs so far.

    They have no state to save, and also act when training starts or resumes.
    """

    trigger = (1, "iteration")

    def __init__(self, optimizer: Optimizer | None = None) -> None:
        self._optimizer = optimizer

    def act(self, trainer: Trainer, epoch: float) -> None:
        """Sets the values for ``epoch``."""
        raise NotImplementedError

    def initialize(self, trainer: Trainer) -> None:
        """Sets the values for the current epoch."""
        self(trainer)

    def __call__(self, trainer: Trainer) -> None:
        """Sets the values for the current epoch."""
        self.act(trainer, trainer.updater.epoch_detail)

    def optimizer_of(self, trainer: Trainer) -> Optimizer:
        """The optimizer given, or the main one of the updater."""
        return self._optimizer or trainer.updater.get_optimizer("main")


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


class RMSpropWarmup(EpochSchedule):
    """Sets ``sgd_share`` of an ``RMSpropMomentumSGD`` by the epoch ``e``.

    ``½ exp(2 (e - center) / period)`` before ``center``, from there on a straight line
    that reaches 1 after half a ``period``.

    Args:
        center: epochs until both shares are equal.
        period: epochs that the change takes.
        optimizer: the main optimizer of the updater unless given.

    Source: Akiba, Suzuki and Fukuda, arXiv:1711.04325.
    """

    def __init__(
        self, center: float = 10, period: float = 5, optimizer: Optimizer | None = None
    ) -> None:
        super().__init__(optimizer)
        self._center = center
        self._period = period

    def act(self, trainer: Trainer, epoch: float) -> None:
        passed = (epoch - self._center) / self._period
        sgd_share = 0.5 * math.exp(2 * passed) if passed < 0 else min(1.0, 0.5 + passed)
        optimizer: Any = self.optimizer_of(trainer)
        optimizer.sgd_share = sgd_share
