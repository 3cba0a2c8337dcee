"""A schedule that multiplies a hyperparameter by a constant at equal steps."""

from __future__ import annotations

from renga.core.optimizer import Optimizer
from renga.extensions.shifts.hyperparameter_shift import HyperparameterShift
from renga.utils.argument import check_count


class StepShift(HyperparameterShift):
    """Sets a hyperparameter to init · gamma^⌊t / step⌋, at most or at least target."""

    def __init__(
        self,
        attr: str,
        gamma: float,
        step: int,
        init: float | None = None,
        target: float | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        super().__init__(attr, init, target, optimizer)
        self._gamma = gamma
        check_count("StepShift: step", step)
        self._step = step

    def value(self, init: float, t: int) -> float:
        return init * self._gamma ** (t // self._step)
