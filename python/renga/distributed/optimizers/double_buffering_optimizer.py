"""Updates by the gradients of the last iteration, which have travelled meanwhile."""

from __future__ import annotations

from typing import Any

import numpy

from renga.communicators.packing import GradientsUnderWay
from renga.distributed.optimizers.multi_node_optimizer import MultiNodeOptimizer
from renga.distributed.optimizers.notice import News
from renga.serializer import Deserializer


class DoubleBufferingOptimizer(MultiNodeOptimizer):
    """Sends gradients while the next ones are computed: each is used one update late.

    The first update only sends; so does the first one after the model has got new
    parameters. Gradients under way are saved with the optimizer: who resumes loses no
    update.
    """

    def __init__(
        self, actual_optimizer: Any, communicator: Any, zero_fill: bool = True
    ) -> None:
        super().__init__(actual_optimizer, communicator, zero_fill)
        vars(self)["_under_way"] = None

    def _new_mean(self) -> None:
        return None

    def _share(self) -> None:
        super()._share()
        if self._under_way is not None:
            # It belongs to other parameters, but the ranks still take part in it.
            self._under_way.arrive()
            vars(self)["_under_way"] = None

    def _apply(self, news: News) -> None:
        self._exchange(news.weight)

    def _apply_given(self) -> None:
        self._exchange(1.0)

    def _exchange(self, weight: float) -> None:
        previous = self._under_way
        vars(self)["_under_way"] = GradientsUnderWay(
            self.communicator, self.target, self.zero_fill, weight
        )
        if previous is not None:
            previous.arrive()
            self.actual_optimizer.update(None)

    def serialize(self, serializer: Any) -> None:
        """Saves or loads the actual optimizer and the gradients under way."""
        super().serialize(serializer)
        names = [name for name, _ in sorted(self.target.namedparams())]
        if isinstance(serializer, Deserializer):
            self._load_under_way(serializer, names)
            return
        means = self._means_under_way()
        serializer("under_way", numpy.array([name in means for name in names]))
        for i, name in enumerate(names):
            if name in means:
                serializer(f"gradient_{i}", means[name])

    def _load_under_way(self, serializer: Any, names: list[str]) -> None:
        try:
            found = serializer("under_way", None)
        except KeyError:  # a file of Chainer's, or of another kind of optimizer
            found = None
        arrived = {
            name: serializer(f"gradient_{i}", None)
            for i, name in enumerate(names)
            if found is not None and found[i]
        }
        vars(self)["_under_way"] = _Arrived(self.target, arrived) if arrived else None

    def _means_under_way(self) -> dict[str, Any]:
        if self._under_way is None:
            return {}
        named = list(self.target.namedparams(include_uninit=False))
        own = [param.grad for _, param in named]
        self.target.cleargrads()
        self._under_way.arrive()
        means = {name: param.grad for name, param in named if param.grad is not None}
        for (_, param), grad in zip(named, own):
            param.grad = grad
        return means


class _Arrived:
    """Means that were saved, by the names of their parameters."""

    def __init__(self, target: Any, means: dict[str, Any]) -> None:
        self._target, self._means = target, means

    def arrive(self) -> None:
        """Makes them the gradients of the model."""
        for name, param in self._target.namedparams(include_uninit=False):
            mean = self._means.get(name)
            param.grad = None if mean is None else param.xp.asarray(mean)
