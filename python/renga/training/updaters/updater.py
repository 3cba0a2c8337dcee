"""Updater: the interface that a trainer needs."""

from __future__ import annotations

from typing import Any

from renga.core.optimizer import Optimizer
from renga.core.serializer import AbstractSerializer


class Updater:
    """Base class of updaters, which train a model one iteration at a time.

    Its attributes ``iteration``, ``epoch``, ``epoch_detail``,
    ``previous_epoch_detail`` and ``is_new_epoch`` are the progress of training.
    """

    def connect_trainer(self, trainer: Any) -> None:
        """Called by the trainer that uses this updater."""

    def finalize(self) -> None:
        """Called once after the training loop."""

    def get_optimizer(self, name: str) -> Optimizer:
        """The optimizer called ``name``."""
        raise NotImplementedError

    def get_all_optimizers(self) -> dict[str, Optimizer]:
        """All optimizers by name."""
        raise NotImplementedError

    def update(self) -> None:
        """Runs one iteration of training."""
        raise NotImplementedError

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the state of the updater."""
        raise NotImplementedError
