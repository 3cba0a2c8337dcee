"""Base of schedules of an optimizer's hyperparameter."""

from __future__ import annotations

import contextlib
from typing import Any

from renga.core.optimizer import Optimizer
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.training import extension
from renga.training.trainer import Trainer


class HyperparameterShift(extension.Extension):
    """Base of schedules: sets an attribute to ``value(t)`` at the t-th call.

    It is also set when training starts. A resumed run begins with the value that the
    hyperparameter had when it was saved, whichever schedule has set it.

    Args:
        attr: name of the hyperparameter.
        init: its value at t = 0; unless given that of the optimizer when training
            started, also in a resumed run.
        target: bound that the value does not pass.
        optimizer: the main optimizer of the updater unless given.
    """

    def __init__(
        self,
        attr: str,
        init: float | None = None,
        target: float | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        self._attr = attr
        self._init = init
        self._is_init_given = init is not None
        self._target = target
        self._optimizer = optimizer
        self._t = 0
        self._last_value: float | None = None
        self._kept = KeptHyperparameter(attr)

    def value(self, init: float, t: int) -> float | None:
        """The hyperparameter at call ``t``; None leaves it unchanged."""
        raise NotImplementedError

    def initialize(self, trainer: Trainer) -> None:
        """Sets the value of the last call."""
        if self._init is None:
            self._init = getattr(self._get_optimizer(trainer), self._attr)
        self._shift(trainer)
        self._kept.initialize(self._get_optimizer(trainer))

    def __call__(self, trainer: Trainer) -> None:
        """Sets the next value."""
        self._t += 1
        self._shift(trainer)

    def _shift(self, trainer: Trainer) -> None:
        assert self._init is not None, "initialize comes before every call"
        value = self.value(self._init, self._t)
        if value is not None:
            if self._target is not None:
                value = _bounded(value, self._init, self._target)
            self._update_value(self._get_optimizer(trainer), value)

    def _update_value(self, optimizer: Any, value: float) -> None:
        """Sets the hyperparameter; subclasses of Chainer's schedules call it, too."""
        setattr(optimizer, self._attr, value)
        self._last_value = value

    def _get_optimizer(self, trainer: Trainer) -> Any:
        return self._optimizer or trainer.updater.get_optimizer("main")

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the number of calls, the first and the present value."""
        self._t = serializer("_t", self._t)
        with contextlib.suppress(KeyError):
            init = serializer("_init", self._init)
            if not self._is_init_given:
                self._init = _as_float(init)
        self._kept.serialize(serializer)


class KeptHyperparameter:
    """The value of an optimizer's attribute, which a resumed run begins with."""

    def __init__(self, attr: str) -> None:
        self._attr = attr
        self._optimizer: Any = None
        self._loaded: float | None = None

    def initialize(self, optimizer: Optimizer) -> None:
        """Sets the loaded value, if there is one, when training starts."""
        self._optimizer = optimizer
        if self._loaded is not None:
            setattr(optimizer, self._attr, self._loaded)
            self._loaded = None

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves the value, or loads it if the file has it."""
        value = self._loaded
        if self._optimizer is not None:
            value = float(getattr(self._optimizer, self._attr))
        with contextlib.suppress(KeyError):
            loaded = serializer("_last_value", value)
            if isinstance(serializer, Deserializer):
                self._loaded = _as_float(loaded)
                if self._optimizer is not None:
                    self.initialize(self._optimizer)


def _as_float(value: Any) -> float | None:
    return None if value is None else float(value)


def _bounded(value: float, init: float, target: float) -> float:
    """``value``, clipped to ``target`` once it has passed that."""
    return min(value, target) if init < target else max(value, target)
