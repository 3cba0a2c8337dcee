"""An extension that averages a ratio over an interval."""

from __future__ import annotations

from renga.core import reporter
from renga.core.serializer import AbstractSerializer, serialize_part
from renga.core.variable import as_number
from renga.training import extension
from renga.training.trainer import Trainer
from renga.training.triggers.interval_trigger import TriggerLike, get_trigger


class MicroAverage(extension.Extension):
    """Reports the sum of one observation over the sum of another.

    Iterations at which either was not observed do not count, and report nothing.

    Args:
        numerator_key, denominator_key: the observations summed up.
        result_key: the observation reported when ``trigger`` fires.
    """

    priority = extension.PRIORITY_EDITOR

    def __init__(
        self,
        numerator_key: str,
        denominator_key: str,
        result_key: str,
        trigger: TriggerLike = (1, "epoch"),
    ) -> None:
        self._numerator_key = numerator_key
        self._denominator_key = denominator_key
        self._result_key = result_key
        self._trigger = get_trigger(trigger)
        self._numerator = 0.0
        self._denominator = 0.0

    def __call__(self, trainer: Trainer) -> None:
        """Adds this iteration's observations to the sums."""
        observed = trainer.observation
        if self._numerator_key not in observed or self._denominator_key not in observed:
            return
        self._numerator += as_number(observed[self._numerator_key])
        self._denominator += as_number(observed[self._denominator_key])
        if self._trigger(trainer):
            reporter.report({self._result_key: self._numerator / self._denominator})
            self._numerator = self._denominator = 0.0

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the sums and the current interval."""
        serialize_part(self._trigger, serializer, "_trigger")
        self._numerator = serializer("_numerator", self._numerator)
        self._denominator = serializer("_denominator", self._denominator)
