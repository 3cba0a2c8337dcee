"""An extension that keeps a log of means."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from renga.core.reporter import DictSummary
from renga.core.serializer import AbstractSerializer, serialize_part
from renga.serializers.atomic import atomic_write
from renga.training import extension
from renga.training.trainer import Trainer
from renga.training.triggers.interval_trigger import TriggerLike, get_trigger
from renga.utils import argument


class LogReport(extension.Extension):
    """Writes the mean of each observation over an interval to a JSON file.

    Each entry holds epoch, iteration and elapsed_time (seconds) as well.

    Args:
        keys: the observations averaged; all of them unless given.
        trigger: ends an interval.
        postprocess: function that may change an entry before it is written.
        filename: name in the trainer's directory, in which the fields of an entry
            are filled in (``"log_{epoch}"``); ``"log"`` unless given. With
            ``log_name=None`` no file is written.
    """

    def __init__(
        self,
        keys: Iterable[str] | str | None = None,
        trigger: TriggerLike = (1, "epoch"),
        postprocess: Callable[[dict[str, object]], object] | None = None,
        filename: str | None = None,
        **kwargs: object,
    ) -> None:
        (log_name,) = argument.parse_kwargs(kwargs, ("log_name", "log"))
        keys = [keys] if isinstance(keys, str) else keys
        self._keys = None if keys is None else list(keys)
        self._trigger = get_trigger(trigger)
        self._postprocess = postprocess
        self._log_name = log_name if filename is None else filename
        self._log: list[dict[str, Any]] = []
        self._init_summary()

    @property
    def log(self) -> list[dict[str, Any]]:
        """All entries so far."""
        return self._log

    def __call__(self, trainer: Trainer) -> None:
        """Adds the observation to the means; writes them if an interval ended."""
        observation = trainer.observation
        if self._keys is not None:
            observation = {k: observation[k] for k in self._keys if k in observation}
        self._summary.add(observation)
        if not trainer.is_before_training and not self._trigger(trainer):
            return
        entry = self._summary.compute_mean()
        entry["epoch"] = trainer.updater.epoch
        entry["iteration"] = trainer.updater.iteration
        entry["elapsed_time"] = trainer.elapsed_time
        if self._postprocess is not None:
            self._postprocess(entry)
        self._log.append(entry)
        self._init_summary()
        if self._log_name is None:
            return
        path = os.path.join(trainer.out, self._log_name.format(**entry))
        with atomic_write(path, "w") as file:
            json.dump(self._log, file, indent=4)

    def _init_summary(self) -> None:
        """Begins an interval; subclasses of Chainer's LogReport call it, too."""
        self._summary = DictSummary()

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the entries and the current interval."""
        serialize_part(self._trigger, serializer, "_trigger")
        self._summary.serialize(serializer["_summary"])
        self._log = json.loads(serializer("_log", json.dumps(self._log)))
