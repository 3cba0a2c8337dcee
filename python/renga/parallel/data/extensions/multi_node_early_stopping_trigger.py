"""A trigger that ends training on all ranks at once."""

from __future__ import annotations

from renga.communicators import Communicator
from renga.core.serializer import AbstractSerializer
from renga.parallel.data.extensions.observation_aggregator import ObservationAggregator
from renga.training.trainer import Trainer
from renga.training.triggers import EarlyStoppingTrigger
from renga.training.triggers.interval_trigger import TriggerLike


class MultiNodeEarlyStoppingTrigger:
    """``EarlyStoppingTrigger`` by the mean of all ranks' observations.

    Args:
        comm: the communicator.
        check_trigger, monitor, patience, mode, verbose, max_trigger: as for
            EarlyStoppingTrigger.
        suffix: appended to ``monitor`` in the key of the mean.
    """

    def __init__(
        self,
        comm: Communicator,
        *,
        check_trigger: TriggerLike = (1, "epoch"),
        monitor: str = "main/loss",
        patience: int | None = None,
        mode: str = "auto",
        verbose: bool = False,
        max_trigger: TriggerLike = (100, "epoch"),
        suffix: str = "_aggregated",
        **kwargs: object,
    ) -> None:
        key = monitor + suffix
        self._aggregator = ObservationAggregator(
            comm, monitor, key, comm_trigger=check_trigger
        )
        self._trigger = EarlyStoppingTrigger(
            check_trigger, key, patience, mode, verbose, max_trigger, **kwargs
        )

    def __call__(self, trainer: Trainer) -> bool:
        """Whether training should end."""
        self._aggregator(trainer)
        ends = self._trigger(trainer)
        if ends:
            self._aggregator.finalize()
        return ends

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the state of both parts."""
        self._aggregator.serialize(serializer["aggregator"])
        self._trigger.serialize(serializer["trigger"])

    def get_training_length(self) -> tuple[float, str]:
        """The length of training if it is not stopped early."""
        return self._trigger.get_training_length()
