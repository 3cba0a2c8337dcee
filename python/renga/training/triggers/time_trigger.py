"""A trigger that fires by the clock."""

from __future__ import annotations

from renga.core.serializer import AbstractSerializer
from renga.training.triggers.progress import Training
from renga.utils.argument import check_number


class TimeTrigger:
    """Fires when another ``period`` seconds of training have passed."""

    def __init__(self, period: float) -> None:
        check_number("TimeTrigger: period", period)
        if period <= 0:
            raise ValueError(f"TimeTrigger: expected a period > 0, got {period}")
        self._period = period
        self._next_time = float(period)

    def __call__(self, trainer: Training) -> bool:
        """Whether a period ended since the last call."""
        elapsed = trainer.elapsed_time
        if elapsed <= self._next_time:
            return False
        self._next_time += self._period
        return True

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the time at which it fires next."""
        self._next_time = serializer("next_time", self._next_time)
