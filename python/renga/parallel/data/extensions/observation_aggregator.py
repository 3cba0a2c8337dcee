"""An observation aggregated over all ranks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from renga.backends import cuda
from renga.communicators import Communicator
from renga.core.serializer import AbstractSerializer, Deserializer, serialize_part
from renga.core.variable import as_array
from renga.parallel.data.extensions.rounds import Rounds
from renga.training import extension
from renga.training.trainer import Trainer
from renga.training.triggers.interval_trigger import TriggerLike
from renga.training.util import get_trigger
from renga.utils.exceptions import CallOutcome


class ObservationAggregator(extension.Extension):
    """Aggregates all ranks' observations of a key.

    Args:
        comm: the communicator.
        original_key: of each rank's observations.
        aggregated_key: of the aggregated observation; the same key by default.
        comm_trigger: when to aggregate the observations since the last time.
        aggregator: a function of the ranks' lists of observations, called on rank 0;
            their mean by default.
    """

    trigger = (1, "iteration")
    priority = extension.PRIORITY_EDITOR

    def __init__(
        self,
        comm: Communicator,
        original_key: str,
        aggregated_key: str | None = None,
        *,
        comm_trigger: TriggerLike = (1, "iteration"),
        aggregator: Callable[..., object] | None = None,
    ) -> None:
        self.comm = comm
        self.original_key = original_key
        self.aggregated_key = aggregated_key or original_key
        self.comm_trigger = get_trigger(comm_trigger)
        self.aggregator = aggregator or _mean
        self._observed: list[Any] = []
        self._rounds = Rounds(type(self).__name__, comm)

    def __call__(self, trainer: Trainer) -> None:
        """Stores this rank's observation; if triggered, observes the aggregate."""
        summary = self.compute_summary(trainer)
        if summary is not None:
            trainer.observation[self.aggregated_key] = summary

    def compute_summary(self, trainer: Trainer) -> object:
        """The aggregated value; None if not triggered.

        Raises:
            Exception: any that the aggregator raises, on every rank.
            RuntimeError: training has ended on another rank.
        """
        if self.original_key in trainer.observation:
            value = trainer.observation[self.original_key]
            self._observed.append(as_array(value))
        if not self.comm_trigger(trainer):
            return None
        self._rounds.begin()
        gathered = self.comm.gather_obj(self._observed)
        self._observed = []
        outcome = None if gathered is None else CallOutcome(self.aggregator, gathered)
        return self.comm.bcast_obj(outcome).get()

    def finalize(self) -> None:
        """Tells the other ranks, which might wait for this one, that training ends."""
        self._rounds.end()

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the observations since the last time, and the trigger."""
        serialize_part(self.comm_trigger, serializer, "comm_trigger")
        values = numpy.array([cuda.to_cpu(value) for value in self._observed])
        loads = isinstance(serializer, Deserializer)
        self._observed = list(serializer("observed", None if loads else values))


def _mean(gathered: list[list[Any]]) -> float | None:
    values = [float(value) for own in gathered for value in own]
    return math.fsum(values) / len(values) if values else None
