"""The updater of a pipeline."""

from __future__ import annotations

import contextlib
from typing import Any

from renga.core.optimizer import GradientMethod
from renga.core.serializer import AbstractSerializer
from renga.dataset.iterator import Iterator
from renga.parallel.pipeline.agreement import LostBatches
from renga.parallel.pipeline.pipeline import Pipeline
from renga.training.updaters import StandardUpdater
from renga.training.updaters.accumulation import next_batches


class PipelineUpdater(StandardUpdater):
    """Trains a :class:`~renga.pipeline.Pipeline` by one batch per iteration.

    Every rank has an iterator that gives the same batches. What the model reports is
    averaged over the micro-batches and reported on every rank.

    Args:
        iterator: gives the batches.
        optimizer: set up with a Pipeline; its ``update`` sees the gradients of this
            rank's parameters.
        loss_func: function of the batch's arrays that gives the loss; by default the
            Pipeline's model.

    Raises:
        TypeError: the optimizer's target is no Pipeline.
    """

    def __init__(
        self, iterator: Iterator, optimizer: GradientMethod, **kwargs: Any
    ) -> None:
        super().__init__(iterator, optimizer, **kwargs)
        target = self._optimizers["main"].target
        if not isinstance(target, Pipeline):
            raise TypeError(
                f"PipelineUpdater: expected an optimizer of a Pipeline, got one of "
                f"{target!r}"
            )

    def update_core(self) -> None:
        """Trains on the batches of one iteration."""
        iterator, optimizer = self._iterators["main"], self._optimizers["main"]
        before = iterator.epoch_detail
        batches = next_batches(iterator, self.accumulate)
        if self.accumulate > 1:
            self._epoch_before = before
        program = self.loss_func or optimizer.target.model
        arguments = [named or args for args, named in map(self._arguments, batches)]
        optimizer.target.train_batches(optimizer, program, arguments)
        if self.auto_new_epoch and self.is_new_epoch:
            optimizer.new_epoch(auto=True)

    def finalize(self) -> None:
        """Completes the batches on their way and ends the iterators."""
        try:
            with contextlib.suppress(LostBatches):
                self._optimizers["main"].target.drain()
        finally:
            super().finalize()

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the state of a single process; every rank takes part.

        Batches on their way are completed before.
        """
        optimizer = self._optimizers["main"]
        with optimizer.target.serialized_parameters(serializer):
            super().serialize(serializer)
