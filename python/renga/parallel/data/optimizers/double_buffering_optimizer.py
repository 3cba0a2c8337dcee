"""Updates by the gradients of the last step, which were reduced during this one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga.communicators import Communicator
from renga.core.link.distinct_params import DistinctParam, distinct_params
from renga.core.optimizer import GradientMethod
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.parallel.data.delayed_reducer import DelayedReducer
from renga.parallel.data.optimizers.multi_node_optimizer import MultiNodeOptimizer


class DoubleBufferingOptimizer(MultiNodeOptimizer):
    """Sends gradients while the next ones are computed: each is used one update late.

    The first update only sends. Gradients in flight are saved with the optimizer, so
    that resumed training loses no update.
    """

    _delayed: DelayedReducer

    def __init__(
        self,
        actual_optimizer: GradientMethod,
        communicator: Communicator,
        zero_fill: bool = True,
    ) -> None:
        delayed = DelayedReducer(communicator, zero_fill)
        vars(self)["_delayed"] = delayed
        super().__init__(actual_optimizer, communicator, zero_fill, delayed=delayed)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the actual optimizer and the gradients in flight."""
        super().serialize(serializer)
        params = distinct_params(self.target)
        if isinstance(serializer, Deserializer):
            self._load_means(serializer, params)
            return
        means = self._delayed.means()
        serializer("under_way", numpy.array([id(d.param) in means for d in params]))
        serializer("loss_scale", self._delayed.loss_scale or 0.0)
        for i, distinct in enumerate(params):
            if id(distinct.param) in means:
                serializer(f"gradient_{i}", means[id(distinct.param)])

    def _load_means(self, serializer: Any, params: Sequence[DistinctParam]) -> None:
        found = _value_if_any(serializer, "under_way")
        if found is None:  # a file of Chainer's, or of another kind of optimizer
            self._delayed.restore([])
            return
        self._delayed.restore(
            [
                (distinct.param, serializer(f"gradient_{i}", None))
                for i, distinct in enumerate(params)
                if found[i]
            ],
            float(_value_if_any(serializer, "loss_scale") or 0) or None,
        )


def _value_if_any(serializer: Any, key: str) -> Any:
    try:
        return serializer(key, None)
    except KeyError:
        return None
