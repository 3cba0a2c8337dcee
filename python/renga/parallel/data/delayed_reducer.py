"""Averaging during the next step: double buffering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from renga.communicators import Communicator, packing
from renga.core.link import Link
from renga.core.link.distinct_params import DistinctParam
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.parallel.data.gradients import take_gradient
from renga.parallel.data.reducer import Reducer
from renga.parallel.data.synchronization import SyncRequest


class DelayedReducer(Reducer):
    """Sends gradients in the background; ``wait`` gives the means of the last step.

    The first step only sends.

    Args:
        comm: the communicator.
        zero_fill: whether a parameter without a gradient on all ranks gets zeros.
    """

    def __init__(self, comm: Communicator, zero_fill: bool) -> None:
        self._comm = comm
        self._zero_fill = zero_fill
        self._loss_scale: float | None = None
        self._in_flight: _GradientsInFlight | _Means | None = None
        self._previous: _GradientsInFlight | _Means | None = None
        self.model: Link | None = None

    @property
    def loss_scale(self) -> float | None:
        """What the means in flight are multiplied by; None for nothing."""
        return None if self._in_flight is None else self._in_flight.loss_scale

    def begin(self, request: SyncRequest, loss_scale: float | None = None) -> None:
        self._loss_scale = loss_scale

    def finalize(self, weight: float) -> None:
        if self.model is None:
            raise RuntimeError("finalize: expected a model, got None")
        self._previous = self._in_flight
        self._in_flight = _GradientsInFlight(
            self._comm, self.model, self._zero_fill, weight, self._loss_scale
        )

    def wait(self) -> bool:
        previous, self._previous = self._previous, None
        if previous is None:
            return False
        # A dynamic loss scale may have changed since.
        for param, mean in previous.means():
            param.grad = mean
            param.loss_scale = previous.loss_scale
        return True

    def means(self) -> dict[int, Array]:
        """The means in flight by the parameters' ids; waits for them."""
        if self._in_flight is None:
            return {}
        return {id(param): mean for param, mean in self._in_flight.means()}

    def restore(
        self, means: list[tuple[Parameter, Array]], loss_scale: float | None = None
    ) -> None:
        """Takes means that were saved as those in flight."""
        self._in_flight = _Means(means, loss_scale) if means else None

    def broadcast(self, params: Sequence[DistinctParam]) -> None:
        """Has all ranks take the means of rank 0; every rank calls it."""
        own = self.means()
        kept = [d.name for d in params if id(d.param) in own]
        names, loss_scale = self._comm.bcast_obj((kept, self.loss_scale))
        by_name = {d.name: d.param for d in params}
        means = []
        for param in map(by_name.__getitem__, names):
            mean = own.get(id(param))
            if mean is None:
                mean = param.xp.empty_like(param.array)
            means.append((param, self._comm.broadcast(mean)))
        self.restore(means, loss_scale)


class _Means(NamedTuple):
    """Means that do not come from a communication."""

    pairs: list[tuple[Parameter, Array]]
    loss_scale: float | None

    def means(self) -> list[tuple[Parameter, Array]]:
        """The parameters with their means."""
        return [
            (param, param.xp.asarray(mean).reshape(param.shape))
            for param, mean in self.pairs
        ]


class _GradientsInFlight:
    """A model's gradients times ``weight``, averaged in the background."""

    def __init__(
        self,
        comm: Communicator,
        model: Link,
        zero_fill: bool,
        weight: float,
        loss_scale: float | None,
    ) -> None:
        self.loss_scale = loss_scale
        self._works = []
        for params in packing.params_by_dtype(comm, model, zero_fill):
            copies = [take_gradient(param, weight) for param in params]
            self._works.append((params, packing.average(comm, copies, wait=False)))

    def means(self) -> list[tuple[Parameter, Array]]:
        """Waits; the parameters with their mean gradients."""
        return [
            pair for params, work in self._works for pair in zip(params, work.wait())
        ]
