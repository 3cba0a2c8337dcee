"""A trigger that ends training when an observation stops improving."""

from __future__ import annotations

import operator
import warnings
from typing import Any

from renga.core.reporter import DictSummary
from renga.core.serializer import AbstractSerializer, serialize_part
from renga.training.triggers.interval_trigger import TriggerLike, get_trigger
from renga.training.triggers.progress import Training, save_or_restore
from renga.utils import argument

_BETTER = {"max": operator.gt, "min": operator.lt}
_WORST = {operator.gt: -float("inf"), operator.lt: float("inf")}


class EarlyStoppingTrigger:
    """Fires when ``monitor`` was no better than its best for ``patience`` checks.

    Args:
        check_trigger: ends the interval over which the observation is averaged.
        monitor: key of the observation.
        patience: checks without improvement before it fires; 3 unless given.
        mode: ``"min"``, ``"max"``, or ``"auto"``: max if monitor is an accuracy.
        verbose: prints a line when it fires.
        max_trigger: ends training in any case.
    """

    def __init__(
        self,
        check_trigger: TriggerLike = (1, "epoch"),
        monitor: str = "main/loss",
        patience: int | None = None,
        mode: str = "auto",
        verbose: bool = False,
        max_trigger: TriggerLike = (100, "epoch"),
        **kwargs: object,
    ) -> None:
        (patients,) = argument.parse_kwargs(kwargs, ("patients", None))
        if patience is not None and patients is not None:
            raise TypeError(
                "EarlyStoppingTrigger: expected patience or its old name patients, got "
                "both"
            )
        given = patients if patience is None else patience
        self.patience = 3 if given is None else given
        self.count = 0
        self.monitor = monitor
        self.verbose = verbose
        self._max_trigger = get_trigger(max_trigger)
        self._interval_trigger = get_trigger(check_trigger)
        self._init_summary()
        what = "EarlyStoppingTrigger: expected mode"
        argument.check_choice(what, mode, "auto", *_BETTER)
        guess = "max" if "accuracy" in monitor else "min"
        self._compare = _BETTER.get(mode, _BETTER[guess])
        self.best = _WORST[self._compare]
        self.already_warning = False

    def __call__(self, trainer: Training) -> bool:
        """Whether training should end."""
        observation = trainer.observation
        if self.monitor in observation:
            self._summary.add({self.monitor: observation[self.monitor]})
        # Both triggers are called every time: each keeps the time of its last call.
        check, end = self._interval_trigger(trainer), self._max_trigger(trainer)
        if end or not check:
            return end
        means = self._summary.compute_mean()
        if self.monitor not in means:
            self._warn(observation)
            return False
        self._init_summary()
        return self._judge(means[self.monitor])

    def _init_summary(self) -> None:
        """Begins an interval; subclasses of Chainer's trigger call it, too."""
        self._summary = DictSummary()

    def _stop_condition(self) -> bool:
        """Whether an interval ends training; subclasses override it."""
        return self.count >= self.patience

    def _judge(self, value: float) -> bool:
        if self._compare(value, self.best):
            self.best, self.count = value, 0
        else:
            self.count += 1
        stop = self._stop_condition()
        if stop and self.verbose:
            print(f"EarlyStoppingTrigger: {self.monitor} stays at best {self.best:g}")
        return stop

    def _warn(self, observation: Any) -> None:
        if not self.already_warning:
            self.already_warning = True
            warnings.warn(
                f"EarlyStoppingTrigger: {self.monitor!r} was not observed, "
                f"only {sorted(observation)}",
                stacklevel=3,
            )

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the best value, the checks since and the interval.

        A run that ended by another trigger, and any of Chainer's, has saved none.
        """
        for name in ("_interval_trigger", "_max_trigger"):
            serialize_part(getattr(self, name), serializer, name)
        self._summary.serialize(serializer["_summary"])
        for name in ("count", "best"):
            value = getattr(self, name)
            message = f"EarlyStoppingTrigger: the snapshot has no {name}; it is {value}"
            setattr(
                self, name, save_or_restore(serializer, name, value, value, message)
            )

    def get_training_length(self) -> tuple[float, str]:
        """The length of training if it is not stopped early."""
        return self._max_trigger.get_training_length()  # type: ignore[attr-defined]
