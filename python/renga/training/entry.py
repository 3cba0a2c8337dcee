"""A trainer's record of an extension."""

from __future__ import annotations

from typing import Any, Callable

from renga.training.triggers.interval_trigger import TriggerLike, get_trigger

PRIORITY_WRITER = 300
PRIORITY_EDITOR = 200
PRIORITY_READER = 100
PRIORITY_SNAPSHOT = -100
DEFAULT_TRIGGER = (1, "iteration")


class ExtensionEntry:
    """An extension, which may be any callable, with its trigger and priority."""

    def __init__(
        self,
        extension: Callable[..., object],
        trigger: TriggerLike | None,
        priority: int | None,
        call_before_training: bool,
    ) -> None:
        if trigger is None:
            trigger = getattr(extension, "trigger", DEFAULT_TRIGGER)
        if isinstance(extension, type):
            raise TypeError(
                f"Trainer.extend: expected an extension, got the class "
                f"{extension.__name__}"
            )
        if priority is None:
            priority = getattr(extension, "priority", PRIORITY_READER)
        self.extension = extension
        self.trigger = get_trigger(trigger)
        if self.saves_trainer:
            priority = min(priority, PRIORITY_SNAPSHOT)
        self.priority: int = priority
        self.call_before_training = call_before_training

    @property
    def restores_trainer(self) -> bool:
        """Whether initializing the extension may load a snapshot."""
        return bool(getattr(self.extension, "autoload", False))

    @property
    def saves_trainer(self) -> bool:
        """Whether the extension is called after all others, and all triggers."""
        return getattr(self.extension, "saves_trainer", False) is True

    def default_name(self) -> str:
        """The extension's default name, else the name of the function."""
        for attribute in ("name", "default_name", "__name__"):
            name = getattr(self.extension, attribute, None)
            if name is not None:
                return name
        raise TypeError(f"Trainer.extend: {self.extension!r} has no name; give one")

    def initialize(self, trainer: object) -> None:
        """Calls the initializer, if there is one."""
        self._call("initialize", trainer)

    def on_error(self, trainer: object, error: Exception) -> None:
        """Calls the error handler, if there is one."""
        self._call("on_error", trainer, error, error.__traceback__)

    def finalize(self) -> None:
        """Calls the finalizer, if there is one."""
        self._call("finalize")

    def _call(self, method: str, *args: Any) -> None:
        function = getattr(self.extension, method, None)
        if function is not None:
            function(*args)
