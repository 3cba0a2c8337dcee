"""A trainer without a model, for tests of extensions and triggers."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable
from typing import Any

from renga.serializer import AbstractSerializer
from renga.training.trainer import Trainer
from renga.training.updaters.updater import Updater


class CountingUpdater(Updater):
    """An updater that only counts; an epoch has ``iter_per_epoch`` iterations."""

    def __init__(self, iter_per_epoch: int) -> None:
        self._iter_per_epoch = iter_per_epoch
        self._optimizers: dict[str, Any] = {}
        self.iteration = 0

    @property
    def epoch(self) -> int:
        """Epochs completed."""
        return self.iteration // self._iter_per_epoch

    @property
    def epoch_detail(self) -> float:
        """Epochs, with the fraction of the current one."""
        return self.iteration / self._iter_per_epoch

    @property
    def previous_epoch_detail(self) -> float:
        """``epoch_detail`` one iteration ago."""
        return max(self.iteration - 1, 0) / self._iter_per_epoch

    @property
    def is_new_epoch(self) -> bool:
        """Whether the last iteration completed an epoch."""
        return self.iteration > 0 and self.iteration % self._iter_per_epoch == 0

    def get_optimizer(self, name: str) -> Any:
        """The optimizer that a test has set under ``name``."""
        return self._optimizers[name]

    def get_all_optimizers(self) -> dict[str, Any]:
        """The optimizers that a test has set; it may add to the dictionary."""
        return self._optimizers

    def update(self) -> None:
        """Counts."""
        self.iteration += 1

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the count."""
        self.iteration = serializer("iteration", self.iteration)


def get_trainer_with_mock_updater(
    stop_trigger: Any = (10, "iteration"),
    iter_per_epoch: int = 10,
    extensions: Iterable[Any] | None = None,
) -> Trainer:
    """A trainer of a CountingUpdater that writes to a temporary directory.

    The directory is removed with the trainer.
    """
    updater = CountingUpdater(iter_per_epoch)
    out = tempfile.mkdtemp(prefix="renga_")
    trainer = Trainer(updater, stop_trigger, out, extensions)
    weakref.finalize(trainer, shutil.rmtree, out, ignore_errors=True)
    return trainer
