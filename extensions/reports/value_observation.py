"""Extensions that report a value of the trainer."""

from __future__ import annotations

from typing import Any, Callable

from renga.training import extension
from renga.training.trainer import Trainer


def observe_value(
    observation_key: str, target_func: Callable[[Trainer], object]
) -> Callable[[Trainer], None]:
    """An extension that observes ``target_func(trainer)`` under ``observation_key``."""

    @extension.make_extension(trigger=(1, "epoch"), priority=extension.PRIORITY_WRITER)
    def _observe_value(trainer: Trainer) -> None:
        trainer.observation[observation_key] = target_func(trainer)

    return _observe_value


def observe_lr(
    optimizer_name: str = "main", observation_key: str = "lr"
) -> Callable[[Trainer], None]:
    """An extension that observes the learning rate of an optimizer."""

    def learning_rate(trainer: Trainer) -> Any:
        return trainer.updater.get_optimizer(optimizer_name).lr

    return observe_value(observation_key, learning_rate)
