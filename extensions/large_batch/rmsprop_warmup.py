"""The transition from RMSprop to momentum SGD."""

from __future__ import annotations

import math
from typing import Any

from renga.core.optimizer import Optimizer
from renga.extensions.large_batch.epoch_schedule import EpochSchedule
from renga.training.trainer import Trainer


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
