"""What triggers read of a trainer, and keep of it in snapshots."""

from __future__ import annotations

import warnings
from typing import Any, Protocol, TypeVar

from renga.core.serializer import AbstractSerializer

UNITS = ("epoch", "iteration")
_Value = TypeVar("_Value")


class Training(Protocol):
    """What triggers read of a trainer: its updater counts iterations and epochs."""

    updater: Any
    observation: dict[str, Any]

    @property
    def elapsed_time(self) -> float: ...


class Progress:
    """The position, in epochs or iterations, at this call and at the one before."""

    def __init__(self, unit: str, op: str) -> None:
        if unit not in UNITS:
            raise ValueError(f"{op}: expected 'epoch' or 'iteration', got {unit!r}")
        self._unit = unit
        self._op = op
        self._iteration = 0
        self._epoch_detail = 0.0

    def advance(self, trainer: Training) -> tuple[float, float]:
        """The positions at the last call and now; keeps the latter."""
        updater = trainer.updater
        before: float
        now: float
        # Negative are those restored from a file without them.
        if self._unit == "iteration":
            before, now = self._iteration, updater.iteration
            before = now - 1 if before < 0 else before
        else:
            before, now = self._epoch_detail, updater.epoch_detail
            before = updater.previous_epoch_detail if before < 0 else before
        self._iteration = updater.iteration
        # Updaters of programs that count iterations only may have none.
        self._epoch_detail = getattr(updater, "epoch_detail", self._epoch_detail)
        return before, now

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the position, with a UserWarning if it was not saved."""
        for name, missing in (("iteration", -1), ("epoch_detail", -1.0)):
            value = save_or_restore(
                serializer,
                f"previous_{name}",
                getattr(self, f"_{name}"),
                missing=missing,
                message=f"{self._op}: the snapshot has no previous_{name}; the "
                "updater's is taken, as if the trigger were called in every iteration",
            )
            setattr(self, f"_{name}", value)


def save_or_restore(
    serializer: AbstractSerializer,
    name: str,
    value: _Value,
    missing: _Value,
    message: str,
) -> _Value:
    """Saves or restores a value; if it was not saved, warns and takes ``missing``."""
    try:
        return serializer(name, value)
    except KeyError:
        warnings.warn(message, stacklevel=3)
        return missing
