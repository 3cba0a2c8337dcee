"""Averaging during the next step: double buffering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from renga.communicators import packing
from renga.distributed.data_parallel.gradients import take_gradient
from renga.distributed.data_parallel.reducer import Reducer

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.communicators.communicator import Array
    from renga.link import Link
    from renga.parameter import Parameter


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
        self._in_flight: Any = None
        self._previous: Any = None
        self.model: Link | None = None

    def finalize(self, weight: float) -> None:
        if self.model is None:
            raise RuntimeError("finalize: expected a model, got None")
        self._previous = self._in_flight
        self._in_flight = _GradientsInFlight(
            self._comm, self.model, self._zero_fill, weight
        )

    def wait(self) -> bool:
        previous, self._previous = self._previous, None
        if previous is None:
            return False
        previous.assign()
        return True

    def discard(self) -> None:
        """Drops the means in flight, which belong to other parameters.

        The ranks still complete their communication, so that none hangs.
        """
        if self._in_flight is not None:
            self._in_flight.assign()
            self._in_flight = None

    def means(self) -> list[tuple[Any, Any]]:
        """The means in flight with their parameters, to be saved; waits for them."""
        return [] if self._in_flight is None else self._in_flight.means()

    def restore(self, means: dict[str, Any]) -> None:
        """Takes means that were saved, by parameters' names, as those in flight."""
        self._in_flight = _RestoredGradients(self.model, means) if means else None


class _GradientsInFlight:
    """A model's gradients times ``weight``, averaged in the background."""

    def __init__(
        self, comm: Communicator, model: Link, zero_fill: bool, weight: float
    ) -> None:
        self._works = []
        for params in packing.params_by_dtype(comm, model, zero_fill):
            copies = [take_gradient(param, weight) for param in params]
            self._works.append((params, packing.average(comm, copies, wait=False)))

    def means(self) -> list[tuple[Parameter, Array]]:
        """Waits; the parameters with their mean gradients."""
        return [
            pair for params, work in self._works for pair in zip(params, work.wait())
        ]

    def assign(self) -> None:
        """Waits, and assigns the means to the gradients of the model."""
        for param, mean in self.means():
            param.grad = mean


class _RestoredGradients:
    """Means that come from a file, not from a communication."""

    def __init__(self, model: Any, means: dict[str, Any]) -> None:
        self._model, self._means = model, means

    def means(self) -> list[tuple[Any, Any]]:
        """The parameters with their means."""
        named = self._model.namedparams(include_uninit=False)
        means = ((param, self._means.get(name)) for name, param in named)
        return [(p, p.xp.asarray(mean)) for p, mean in means if mean is not None]

    def assign(self) -> None:
        """Makes them the gradients of the model."""
        self._model.cleargrads()
        for param, mean in self.means():
            param.grad = mean
