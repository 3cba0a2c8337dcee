"""Elastic averaging: ranks are pulled towards a common center."""

from __future__ import annotations

from renga.communicators import Communicator
from renga.core.optimizer import GradientMethod
from renga.core.serializer import AbstractSerializer
from renga.core.types import Array
from renga.parallel.asynchronous.packed import reduce
from renga.parallel.asynchronous.periodic import (
    Meeting,
    PeriodicOptimizer,
    serialize_arrays,
)


class ElasticAveragingOptimizer(PeriodicOptimizer):
    """Updates this rank's parameters x; every few updates, averages with a center c.

    ``x -= alpha (x - c)`` and ``c += alpha sum_i (x_i - c)``, where alpha is beta over
    the number of ranks; ``c + sum_i x_i`` does not change. Every rank has the same copy
    of the center, which :meth:`averaged` copies into the model.

    Source: Zhang, Choromanska and LeCun, Deep learning with elastic averaging SGD, NIPS
    2015, in its synchronous form.
    """

    _name = "elastic_averaging"
    _center: list[Array]

    def __init__(
        self,
        actual_optimizer: GradientMethod,
        communicator: Communicator,
        every: int,
        beta: float,
    ) -> None:
        super().__init__(actual_optimizer, communicator, every)
        vars(self).update(_alpha=beta / communicator.size, _center=[])

    def _after_begin(self, resumes: bool) -> None:
        flats = self._packed.pack()
        # Files of other optimizers have no center.
        resumes = resumes and [x.size for x in self._center] == [x.size for x in flats]
        if not resumes:
            self._center = flats
        # That of a file is in the main memory.
        devices = [group[0].device for group in self._packed.groups]
        self._center = [device.send(x) for device, x in zip(devices, self._center)]
        super()._after_begin(resumes)

    def _change(self, arrays: list[Array], masks: list[Array]) -> None:
        for view, x, mask in zip(self._packed.views(self._center), arrays, masks):
            view[mask] = x[mask]

    def _meet(self, meeting: Meeting) -> None:
        if meeting.changed.any():
            root = int(meeting.changed.argmax())
            for center in self._center:
                self.communicator.broadcast(center, root)
        if meeting.joined.all():
            return  # the center is what has been trained
        self._pull()

    def _pull(self) -> None:
        """Moves the parameters and the center; every rank calls it."""
        pulls = self._packed.pack()
        for pull, center in zip(pulls, self._center):
            pull -= center
            pull *= pull.dtype.type(-self._alpha)
        self._packed.add(pulls)
        reduce(self.communicator, pulls, "sum")
        for pull, center in zip(pulls, self._center):
            center -= pull

    def center(self) -> list[Array]:
        """A flat array for each dtype of the parameters."""
        return [x.copy() for x in self._center]

    def _average(self) -> list[Array]:
        return self.center()

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the actual optimizer and the center."""
        super().serialize(serializer)
        own = serializer[self._name]
        self._center = serialize_arrays(own, "center", self._center)
