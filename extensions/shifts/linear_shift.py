"""A schedule that moves a hyperparameter along a line."""

from __future__ import annotations

from renga.core.optimizer import Optimizer
from renga.extensions.shifts.hyperparameter_shift import HyperparameterShift


class LinearShift(HyperparameterShift):
    """Moves a hyperparameter from one value to another between two calls.

    Args:
        attr: name of the hyperparameter.
        value_range: the values before and after.
        time_range: the calls between which it moves.
        optimizer: the main optimizer of the updater unless given.
    """

    def __init__(
        self,
        attr: str,
        value_range: tuple[float, float],
        time_range: tuple[int, int],
        optimizer: Optimizer | None = None,
    ) -> None:
        if time_range[0] > time_range[1]:
            raise ValueError(
                f"LinearShift: expected a time_range from first to last, got "
                f"{time_range}"
            )
        self._value_range = value_range
        self._time_range = time_range
        super().__init__(attr, init=value_range[0], optimizer=optimizer)

    def value(self, init: float, t: int) -> float:
        (first, last), (begin, end) = self._value_range, self._time_range
        if t <= begin:
            return first
        if t >= end:
            return last
        return first + (last - first) * (t - begin) / (end - begin)
