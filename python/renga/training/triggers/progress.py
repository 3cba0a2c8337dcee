"""The progress of training at the last call of a trigger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from renga.serializer import AbstractSerializer

if TYPE_CHECKING:
    from renga.training.trainer import Trainer

UNITS = ("epoch", "iteration")


class Progress:
    """The position, in epochs or iterations, at this call and at the one before."""

    def __init__(self, unit: str, op: str) -> None:
        if unit not in UNITS:
            raise ValueError(f"{op}: expected 'epoch' or 'iteration', got {unit!r}")
        self._unit = unit
        self._iteration = 0
        self._epoch_detail = 0.0

    def advance(self, trainer: Trainer) -> tuple[float, float]:
        """The positions at the last call and now; keeps the latter."""
        updater = trainer.updater
        iteration, epoch_detail = self._iteration, self._epoch_detail
        if iteration < 0:  # restored from a file without it
            iteration = updater.iteration - 1
            epoch_detail = updater.previous_epoch_detail
        self._iteration = updater.iteration
        self._epoch_detail = getattr(updater, "epoch_detail", self._epoch_detail)
        if self._unit == "iteration":
            return iteration, self._iteration
        return epoch_detail, self._epoch_detail

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the position."""
        try:
            self._iteration = serializer("previous_iteration", self._iteration)
            self._epoch_detail = serializer("previous_epoch_detail", self._epoch_detail)
        except KeyError:
            self._iteration = -1
