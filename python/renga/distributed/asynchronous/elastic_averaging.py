"""Elastic averaging: ranks are pulled towards a common center."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from renga.distributed.asynchronous.asynchronous_optimizer import AsynchronousOptimizer
from renga.distributed.asynchronous.packed import reduce
from renga.serializer import Deserializer

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.communicators.communicator import Array


class ElasticAveragingOptimizer(AsynchronousOptimizer):
    """Updates this rank's parameters x; every few updates, averages with a center c.

    ``x -= alpha (x - c)`` and ``c += alpha sum_i (x_i - c)``, where alpha is beta over
    the number of ranks; ``c + sum_i x_i`` does not change. Every rank has the same copy
    of the center, which :meth:`averaged` copies into the model.

    Source: Zhang, Choromanska and LeCun, Deep learning with elastic averaging SGD, NIPS
    2015, in its synchronous form.
    """

    _center: list[Array]
    _updates: int

    def __init__(
        self, actual_optimizer: Any, communicator: Communicator, every: int, beta: float
    ) -> None:
        super().__init__(actual_optimizer, communicator)
        vars(self).update(
            _every=every,
            _alpha=beta / communicator.size,
            _center=[],
            _updates=0,  # since the last average
        )

    def _after_begin(self, resumes: bool) -> None:
        if not resumes:
            self._center, self._updates = self._packed.pack(), 0

    def _update(self, forward: Callable[[], Any] | None) -> None:
        self._compute_gradients(forward)
        self.actual_optimizer.update()
        self._updates += 1
        if self._updates == self._every:
            self._synchronize()

    def _synchronize(self) -> None:
        pulls = self._packed.pack()
        for pull, center in zip(pulls, self._center):
            pull -= center
            pull *= -self._alpha
        self._packed.add(pulls)
        reduce(self.communicator, pulls, "sum")
        for pull, center in zip(pulls, self._center):
            center -= pull
        self._updates = 0

    def center(self) -> list[Array]:
        """A flat array for each dtype of the parameters."""
        return [x.copy() for x in self._center]

    def _average(self) -> list[Array]:
        return self.center()

    def serialize(self, serializer: Any) -> None:
        """Saves or loads the actual optimizer and the center."""
        super().serialize(serializer)
        own = serializer["elastic_averaging"]
        count = own("centers", len(self._center))
        self._updates = own("updates", self._updates)
        if isinstance(serializer, Deserializer):
            self._center = [own(f"center_{i}", None) for i in range(count)]
        else:
            for i, x in enumerate(self._center):
                own(f"center_{i}", x)
