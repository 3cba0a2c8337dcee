"""Updates by the gradients of the last iteration, which have travelled meanwhile."""

from __future__ import annotations

from typing import Any

from renga.communicators.packing import GradientsUnderWay
from renga.distributed.optimizers.multi_node_optimizer import MultiNodeOptimizer
from renga.distributed.optimizers.notice import News


class DoubleBufferingOptimizer(MultiNodeOptimizer):
    """Sends gradients while the next ones are computed: each is used one update late.

    The first update only sends; so does the first one after the model has got new
    parameters.
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
