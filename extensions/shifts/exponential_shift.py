"""A schedule that multiplies a hyperparameter by a constant."""

from __future__ import annotations

from renga.core.optimizer import Optimizer
from renga.extensions.shifts.hyperparameter_shift import HyperparameterShift


class ExponentialShift(HyperparameterShift):
    """Sets a hyperparameter to init · rate^t, at most or at least ``target``.

    Raises:
        ValueError: the rate is negative.
    """

    def __init__(
        self,
        attr: str,
        rate: float,
        init: float | None = None,
        target: float | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        if rate < 0:
            raise ValueError(f"ExponentialShift: expected a rate >= 0, got {rate}")
        super().__init__(attr, init, target, optimizer)
        self._rate = rate

    def value(self, init: float, t: int) -> float:
        return init * self._rate**t
