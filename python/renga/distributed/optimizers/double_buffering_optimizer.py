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

    def _averages_itself(self) -> bool:
        return False

    def _share(self) -> None:
        super()._share()
        if self._under_way is not None:
            # It belongs to other parameters, but the ranks still take part in it.
            self._under_way.arrive()
            vars(self)["_under_way"] = None

    def _apply(self, news: News) -> None:
        self._exchange(news.weight)

    def _apply_given(self, news: News) -> None:
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
        means = {id(param): mean for param, mean in self._under_way.means()}
        named = self.target.namedparams(include_uninit=False)
        return {name: means[id(param)] for name, param in named if id(param) in means}


class _Arrived:
    """Means that were saved, by the names of their parameters."""

    def __init__(self, target: Any, means: dict[str, Any]) -> None:
        self._target, self._means = target, means

    def means(self) -> list[tuple[Any, Any]]:
        """The parameters with their means."""
        named = self._target.namedparams(include_uninit=False)
        means = ((param, self._means.get(name)) for name, param in named)
        return [(p, p.xp.asarray(mean)) for p, mean in means if mean is not None]

    def arrive(self) -> None:
        """Makes them the gradients of the model."""
        self._target.cleargrads()
        for param, mean in self.means():
            param.grad = mean
