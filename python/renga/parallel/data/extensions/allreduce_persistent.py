"""The mean over ranks of a model's persistent arrays."""

from __future__ import annotations

from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.link.own_values import floating_persistent_arrays
from renga.training import extension
from renga.training.trainer import Trainer


class AllreducePersistent(extension.Extension):
    """Replaces the persistent arrays of a model by their mean over the ranks.

    Each rank's BatchNormalization has running statistics of its own batches; this
    replaces them by their mean. It runs before evaluators and snapshots. Arrays of
    integers are not changed.

    Args:
        model: with the same persistent arrays on every rank.
        comm: the communicator.
    """

    trigger = (1, "epoch")
    priority = extension.PRIORITY_WRITER + 1

    def __init__(self, model: Link, comm: Communicator) -> None:
        self.model = model
        self.comm = comm

    def __call__(self, trainer: Trainer | None = None) -> None:
        """Averages them now."""
        for array in floating_persistent_arrays(self.model):
            self.comm.all_reduce(array, "mean", out=array)
