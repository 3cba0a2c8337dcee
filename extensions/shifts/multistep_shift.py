"""A schedule that multiplies a hyperparameter by a constant at given steps."""

from __future__ import annotations

from collections.abc import Sequence

from renga.core.optimizer import Optimizer
from renga.extensions.shifts.hyperparameter_shift import HyperparameterShift


class MultistepShift(HyperparameterShift):
    """Sets a hyperparameter to init · gamma^(number of ``step_value`` reached)."""

    def __init__(
        self,
        attr: str,
        gamma: float,
        step_value: Sequence[int],
        init: float,
        optimizer: Optimizer | None = None,
    ) -> None:
        super().__init__(attr, init, optimizer=optimizer)
        self._gamma = gamma
        self._step_value = step_value

    def value(self, init: float, t: int) -> float:
        return init * self._gamma ** sum(t >= step for step in self._step_value)
