"""Triggers from the short forms of arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from renga.training.triggers.interval_trigger import IntervalTrigger

if TYPE_CHECKING:
    from renga.training.trainer import Trainer

Trigger = Callable[["Trainer"], bool]


def get_trigger(trigger: Any) -> Trigger:
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


def _never(trainer: Trainer) -> bool:
    return False
