"""A trigger that fires at given points."""

from __future__ import annotations

from collections.abc import Sequence

from renga.core.serializer import AbstractSerializer
from renga.training.triggers.progress import Progress, Training, save_or_restore


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
