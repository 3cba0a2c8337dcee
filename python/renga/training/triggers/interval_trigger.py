"""A trigger that fires periodically, and triggers from the short forms of arguments."""

from __future__ import annotations

from typing import Any, Callable, Union

from renga.core.serializer import AbstractSerializer
from renga.training.triggers.progress import Progress, Training
from renga.utils.argument import check_number

Trigger = Callable[[Any], bool]  # of a Trainer
TriggerLike = Union[Trigger, tuple[float, str]]
"""What ``get_trigger`` makes a trigger of: one, or (period, unit)."""


class IntervalTrigger:
    """Fires when training passes a multiple of ``period`` epochs or iterations.

    Raises:
        ValueError: the period is not positive, or the unit unknown.
    """

    def __init__(self, period: float, unit: str) -> None:
        self._progress = Progress(unit, "IntervalTrigger")
        check_number("IntervalTrigger: period", period)
        if period <= 0:
            raise ValueError(f"IntervalTrigger: expected a period > 0, got {period}")
        self.period = period
        self.unit = unit
        self.count: float = 0

    def __call__(self, trainer: Training) -> bool:
        """Whether a period ended since the last call."""
        before, now = self._progress.advance(trainer)
        self.count = now // self.period
        return before // self.period != self.count

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the position of the last call."""
        self._progress.serialize(serializer)

    def get_training_length(self) -> tuple[float, str]:
        """The period and its unit: the length of training this trigger ends."""
        return self.period, self.unit

    def __str__(self) -> str:
        return f"IntervalTrigger({self.period}, {self.unit!r})"


def get_trigger(trigger: TriggerLike | None) -> Trigger:
    """A trigger from itself, from (period, unit), or from None: one that never fires.

    Raises:
        TypeError: another type.
    """
    if trigger is None:
        return _never
    if callable(trigger):
        return trigger
    if not isinstance(trigger, (tuple, list)) or len(trigger) != 2:
        raise TypeError(
            f"get_trigger: expected a callable, (period, unit) or None, got {trigger!r}"
        )
    return IntervalTrigger(*trigger)


def _never(trainer: object) -> bool:
    return False
