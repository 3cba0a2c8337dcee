"""A schedule that divides a hyperparameter by a power of time."""

from __future__ import annotations

from renga.core.optimizer import Optimizer
from renga.extensions.shifts.hyperparameter_shift import HyperparameterShift


class InverseShift(HyperparameterShift):
    """Sets a hyperparameter to init · (1 + gamma · t)^-power, at least ``target``.

    Raises:
        ValueError: gamma is negative.
    """

    def __init__(
        self,
        attr: str,
        gamma: float,
        power: float,
        init: float | None = None,
        target: float | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        if gamma < 0:
            raise ValueError(f"InverseShift: expected gamma >= 0, got {gamma}")
        super().__init__(attr, init, target, optimizer)
        self._gamma = gamma
        self._power = power

    def value(self, init: float, t: int) -> float:
        return init * (1 + self._gamma * t) ** -self._power
