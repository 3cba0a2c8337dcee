"""Base of schedules by epochs."""

from __future__ import annotations

from renga.core.optimizer import Optimizer
from renga.training import extension
from renga.training.trainer import Trainer


class EpochSchedule(extension.Extension):
    """Base of schedules that depend only on the number of epochs so far.

    They have no state to save, and also act when training starts or resumes.
    """

    trigger = (1, "iteration")

    def __init__(self, optimizer: Optimizer | None = None) -> None:
        self._optimizer = optimizer

    def act(self, trainer: Trainer, epoch: float) -> None:
        """Sets the values for ``epoch``."""
        raise NotImplementedError

    def initialize(self, trainer: Trainer) -> None:
        """Sets the values for the current epoch."""
        self(trainer)

    def __call__(self, trainer: Trainer) -> None:
        """Sets the values for the current epoch."""
        self.act(trainer, trainer.updater.epoch_detail)

    def optimizer_of(self, trainer: Trainer) -> Optimizer:
        """The optimizer given, or the main one of the updater."""
        return self._optimizer or trainer.updater.get_optimizer("main")
