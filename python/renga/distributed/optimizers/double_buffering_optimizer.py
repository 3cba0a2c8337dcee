"""Updates by the gradients of the last step, which were reduced during this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from renga.distributed.data_parallel.delayed_reducer import DelayedReducer
from renga.distributed.data_parallel.reducer import Reducer
from renga.distributed.optimizers.multi_node_optimizer import MultiNodeOptimizer
from renga.serializer import Deserializer

if TYPE_CHECKING:
    from renga.communicators import Communicator


class DoubleBufferingOptimizer(MultiNodeOptimizer):
    """Sends gradients while the next ones are computed: each is used one update late.

    The first update only sends; so does the first one after the model has got new
    parameters. Gradients in flight are saved with the optimizer, so that resumed
    training loses no update.
    """

    _delayed: DelayedReducer

    def __init__(
        self, actual_optimizer: Any, communicator: Communicator, zero_fill: bool = True
    ) -> None:
        super().__init__(actual_optimizer, communicator, zero_fill)
        vars(self)["_delayed"] = DelayedReducer(communicator, zero_fill)

    def _averages_in_buckets(self) -> bool:
        """False: gradients of all kinds go through the delayed reducer."""
        return False

    def _external_reducer(self) -> Reducer:
        self._delayed.model = self.target
        return self._delayed

    def _broadcast_parameters(self) -> None:
        super()._broadcast_parameters()
        self._delayed.discard()

    def serialize(self, serializer: Any) -> None:
        """Saves or loads the actual optimizer and the gradients in flight."""
        super().serialize(serializer)
        self._external_reducer()
        names = [name for name, _ in sorted(self.target.namedparams())]
        if isinstance(serializer, Deserializer):
            self._load_means(serializer, names)
            return
        means = self._named_means()
        serializer("under_way", numpy.array([name in means for name in names]))
        for i, name in enumerate(names):
            if name in means:
                serializer(f"gradient_{i}", means[name])

    def _load_means(self, serializer: Any, names: list[str]) -> None:
        try:
            found = serializer("under_way", None)
        except KeyError:  # a file of Chainer's, or of another kind of optimizer
            found = None
        means = {
            name: serializer(f"gradient_{i}", None)
            for i, name in enumerate(names)
            if found is not None and found[i]
        }
        self._delayed.restore(means)

    def _named_means(self) -> dict[str, Any]:
        means = {id(param): mean for param, mean in self._delayed.means()}
        named = self.target.namedparams(include_uninit=False)
        return {name: means[id(param)] for name, param in named if id(param) in means}
