"""Triggers that fire once, at given points, and by the clock."""

from __future__ import annotations

from collections.abc import Sequence

from renga.core.serializer import AbstractSerializer
from renga.training.triggers.progress import Progress, Training, save_or_restore
from renga.utils.argument import check_number


class OnceTrigger:
    """Fires at the first call, and with ``call_on_resume`` once more after a resume."""

    def __init__(self, call_on_resume: bool = False) -> None:
        self._flag_first = True
        self._flag_resumed = call_on_resume

    @property
    def finished(self) -> bool:
        """Whether it will not fire any more."""
        return not (self._flag_first or self._flag_resumed)

    def __call__(self, trainer: Training) -> bool:
        """Whether it has not fired yet."""
        fire = not self.finished
        self._flag_first = self._flag_resumed = False
        return fire

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores whether it is still to fire; if not saved, it has fired."""
        self._flag_first = save_or_restore(
            serializer,
            "_flag_first",
            self._flag_first,
            missing=False,
            message="OnceTrigger: the snapshot does not tell whether it has fired; it "
            "does not fire again",
        )


class ManualScheduleTrigger:
    """Fires when training passes one of ``points``, in epochs or iterations.

    ``finished`` is true once the last point is passed.

    Raises:
        ValueError: the unit is unknown.
    """

    def __init__(self, points: float | Sequence[float], unit: str) -> None:
        self._progress = Progress(unit, "ManualScheduleTrigger")
        self.points = list(points) if isinstance(points, Sequence) else [points]
        self.unit = unit
        self.finished = False

    def __call__(self, trainer: Training) -> bool:
        """Whether a point was passed since the last call."""
        before, now = self._progress.advance(trainer)
        self.finished = all(point <= now for point in self.points)
        return any(before < point <= now for point in self.points)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the position of the last call."""
        self._progress.serialize(serializer)
        self.finished = save_or_restore(
            serializer,
            "finished",
            self.finished,
            missing=False,
            message="ManualScheduleTrigger: the snapshot does not tell whether it is "
            "finished; the next call finds out",
        )


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
