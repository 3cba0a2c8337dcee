"""Triggers that fire when an observed value is the best so far."""

from __future__ import annotations

import operator
from typing import Callable

from renga.core.reporter import DictSummary
from renga.core.serializer import AbstractSerializer, serialize_part
from renga.training.triggers.interval_trigger import TriggerLike, get_trigger
from renga.training.triggers.progress import Training


class BestValueTrigger:
    """Fires when the mean of an observation over an interval is better than all before.

    Args:
        key: the observation.
        compare: function of (best, new) that returns whether new is better.
        trigger: ends an interval.

    Raises:
        KeyError: an interval ends in which ``key`` was not observed.
    """

    def __init__(
        self,
        key: str,
        compare: Callable[[float, float], bool],
        trigger: TriggerLike = (1, "epoch"),
    ) -> None:
        self._key = key
        self._compare = compare
        self._interval_trigger = get_trigger(trigger)
        self._best_value: float | None = None
        self._init_summary()

    def __call__(self, trainer: Training) -> bool:
        """Whether an interval ended here and was the best."""
        observation = trainer.observation
        if self._key in observation:
            self._summary.add({self._key: observation[self._key]})
        if not self._interval_trigger(trainer):
            return False
        means = self._summary.compute_mean()
        if self._key not in means:
            raise KeyError(
                f"{type(self).__name__}: {self._key!r} was not observed, "
                f"only {sorted(observation)}"
            )
        value, best = means[self._key], self._best_value
        self._init_summary()
        # NaN must not become the best value: no comparison with it is true.
        if value != value:
            return False
        if best is not None and best == best and not self._compare(best, value):
            return False
        self._best_value = value
        return True

    def _init_summary(self) -> None:
        """Begins an interval; subclasses written for Chainer call it, too."""
        self._summary = DictSummary()

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the best value and the current interval."""
        serialize_part(self._interval_trigger, serializer, "interval_trigger")
        self._summary.serialize(serializer["summary"])
        best = serializer("best_value", self._best_value)
        self._best_value = None if best is None else float(best)


class MaxValueTrigger(BestValueTrigger):
    """Fires when the mean of an observation over an interval is the greatest so far."""

    def __init__(self, key: str, trigger: TriggerLike = (1, "epoch")) -> None:
        super().__init__(key, operator.lt, trigger)


class MinValueTrigger(BestValueTrigger):
    """Fires when the mean of an observation over an interval is the least so far."""

    def __init__(self, key: str, trigger: TriggerLike = (1, "epoch")) -> None:
        super().__init__(key, operator.gt, trigger)
