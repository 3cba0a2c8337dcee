"""A trainer without a model, for tests of extensions and triggers."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable
from typing import Any, Callable
from unittest import mock

from renga.core.serializer import AbstractSerializer
from renga.training.trainer import Trainer
from renga.training.triggers.interval_trigger import TriggerLike


def _counting_updater(iter_per_epoch: int) -> mock.Mock:
    """A mock that counts: an epoch has ``iter_per_epoch`` iterations.

    A test may add to the dictionary of optimizers; others are mocks.
    """
    updater = mock.Mock()
    optimizers: dict[str, Any] = {}
    updater.get_all_optimizers.return_value = optimizers
    updater.get_optimizer.side_effect = lambda name="main": optimizers.get(
        name, mock.DEFAULT
    )

    def move_to(iteration: int) -> None:
        before = (iteration - 1) / iter_per_epoch
        updater.iteration = iteration
        updater.epoch = iteration // iter_per_epoch
        updater.epoch_detail = iteration / iter_per_epoch
        updater.previous_epoch_detail = before if iteration else None
        updater.is_new_epoch = before // 1 != updater.epoch

    def update() -> None:
        updater.update_core()
        move_to(updater.iteration + 1)

    def serialize(serializer: AbstractSerializer) -> None:
        move_to(serializer("iteration", updater.iteration))

    move_to(0)
    updater.update = update
    updater.serialize = serialize
    return updater


def get_trainer_with_mock_updater(
    stop_trigger: TriggerLike = (10, "iteration"),
    iter_per_epoch: int = 10,
    extensions: Iterable[Callable[[Trainer], object]] | None = None,
) -> Trainer:
    """A trainer that writes to a temporary directory, with a mock as its updater.

    ``update()`` of the mock calls its ``update_core()`` and counts. The directory is
    removed with the trainer.
    """
    updater = _counting_updater(iter_per_epoch)
    out = tempfile.mkdtemp(prefix="renga_")
    trainer = Trainer(updater, stop_trigger, out, extensions)
    weakref.finalize(trainer, shutil.rmtree, out, ignore_errors=True)
    return trainer
