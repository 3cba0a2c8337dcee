"""A trigger that fires once."""

from __future__ import annotations

from renga.core.serializer import AbstractSerializer
from renga.training.triggers.progress import Training, save_or_restore


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
