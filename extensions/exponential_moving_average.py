"""An extension that averages the parameters of a model over its updates."""

from __future__ import annotations

import copy
from typing import Any

from renga.core.link import Link
from renga.core.link.distinct_params import distinct_params
from renga.core.serializer import AbstractSerializer
from renga.training import extension
from renga.training.trainer import Trainer
from renga.utils.argument import check_number


class ExponentialMovingAverage(extension.Extension):
    """Keeps a copy of a model whose parameters are running means of the model's.

    After each update ``average = decay * average + (1 - decay) * parameter``; the
    first one copies the parameters. Persistent values, such as the statistics of batch
    normalization, are those of the model. ``ema.model`` is to be evaluated and saved::

        ema = extensions.ExponentialMovingAverage(model, decay=0.999)
        trainer.extend(ema)
        trainer.extend(extensions.Evaluator(test_iterator, ema.model), name="ema")

    Args:
        model: the link that is trained.
        decay: from 0 (the last parameters) to below 1.

    Source: Polyak and Juditsky, Acceleration of stochastic approximation by averaging,
    1992.
    """

    trigger = (1, "iteration")
    # This runs before the evaluators, which are writers.
    priority = extension.PRIORITY_WRITER + 1

    def __init__(self, model: Link, decay: float = 0.999) -> None:
        if not isinstance(model, Link):
            raise TypeError(
                f"ExponentialMovingAverage: expected a Link, got {type(model).__name__}"
            )
        check_number("ExponentialMovingAverage: decay", decay)
        if not 0 <= decay < 1:
            raise ValueError(
                "ExponentialMovingAverage: expected a decay from 0 to below 1, got "
                f"{decay}"
            )
        self.decay = decay
        self.model: Any = copy.deepcopy(model)
        self._source = model
        self._updates = 0

    def __call__(self, trainer: Trainer | None = None) -> None:
        """Adds the present parameters to the means."""
        previous = []
        if self._updates > 0:
            params = [each.param for each in distinct_params(self.model, False)]
            previous = [(param, param.array.copy()) for param in params]
        self._updates += 1
        self.model.copyparams(self._source)  # with persistent values
        for param, old in previous:
            new = param.array
            new += self.decay * (old - new)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the averages and the number of updates."""
        self._updates = serializer("updates", self._updates)
        self.model.serialize(serializer["model"])
