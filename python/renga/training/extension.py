"""Extensions: what a trainer does besides updating the model."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Callable

from renga.core.serializer import AbstractSerializer
from renga.training.entry import (
    DEFAULT_TRIGGER,
    PRIORITY_EDITOR as PRIORITY_EDITOR,
    PRIORITY_READER as PRIORITY_READER,
    PRIORITY_SNAPSHOT as PRIORITY_SNAPSHOT,
    PRIORITY_WRITER as PRIORITY_WRITER,
)
from renga.training.trainer import Trainer
from renga.training.triggers.interval_trigger import TriggerLike
from renga.utils import argument


class Extension:
    """Base of extensions; a trainer calls it when ``trigger`` fires.

    Extensions of higher ``priority`` are called first: writers, who report values,
    then editors, who change reported values, then readers. One that ``saves_trainer``
    comes after these, once all triggers have seen the iteration. Only extensions of a
    priority below ``PRIORITY_SNAPSHOT`` are called after it.
    """

    trigger: Any = DEFAULT_TRIGGER
    priority: int = PRIORITY_READER
    saves_trainer: bool = False
    name: str | None = None

    @property
    def default_name(self) -> str:
        """The name under which a trainer registers it by default."""
        return type(self).__name__

    def __call__(self, trainer: Trainer) -> object:
        """Runs the extension."""
        raise NotImplementedError(
            f"{type(self).__name__}: an extension must define __call__"
        )

    def initialize(self, trainer: Trainer) -> object:
        """Called once before the training loop, after a resume."""

    def on_error(
        self, trainer: Trainer, exc: Exception, tb: TracebackType | None
    ) -> object:
        """Called when the training loop raised ``exc``, before ``finalize``."""

    def finalize(self) -> object:
        """Called once after the training loop, even if that raised."""

    def serialize(self, serializer: AbstractSerializer) -> object:
        """Saves or restores the state of the extension."""


def make_extension(
    trigger: TriggerLike | None = None,
    default_name: str | None = None,
    priority: int | None = None,
    finalizer: Callable[[], object] | None = None,
    initializer: Callable[[Trainer], object] | None = None,
    on_error: Callable[..., object] | None = None,
    **kwargs: object,
) -> Callable[[Callable], Callable]:
    """Decorator that gives a function of the trainer the attributes of an Extension."""
    argument.check_unexpected_kwargs(
        kwargs,
        invoke_before_training="make_extension: invoke_before_training was removed; "
        "give an initializer",
    )
    argument.assert_kwargs_empty(kwargs)

    def decorate(extension: Any) -> Any:
        extension.trigger = Extension.trigger if trigger is None else trigger
        extension.default_name = default_name or extension.__name__
        extension.priority = Extension.priority if priority is None else priority
        extension.finalize = finalizer
        extension.on_error = on_error
        extension.initialize = initializer
        return extension

    return decorate
