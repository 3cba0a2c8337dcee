"""What schedules by epochs have in common."""

from __future__ import annotations

from typing import Any

from renga.training import extension
from renga.training.trainer import Trainer


class EpochSchedule(extension.Extension):
    """Base of schedules that follow from how many epochs have passed, and nothing else.

    So there is nothing to save; it acts when training starts or resumes, too.
    """

    trigger = (1, "iteration")

    def __init__(self, optimizer: Any = None) -> None:
        self._optimizer = optimizer

    def act(self, trainer: Trainer, epoch: float) -> None:
        """Sets what is to hold after so many epochs."""
        raise NotImplementedError

    def initialize(self, trainer: Trainer) -> None:
        """Sets what holds now."""
        self(trainer)

    def __call__(self, trainer: Trainer) -> None:
        """Sets what holds now."""
        self.act(trainer, trainer.updater.epoch_detail)

    def optimizer_of(self, trainer: Trainer) -> Any:
        """The optimizer given, or the main one of the updater."""
        return self._optimizer or trainer.updater.get_optimizer("main")
