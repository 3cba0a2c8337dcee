"""A schedule that takes a hyperparameter to zero along a polynomial."""

from __future__ import annotations

from renga.core.optimizer import Optimizer
from renga.extensions.shifts.hyperparameter_shift import HyperparameterShift
from renga.utils.argument import check_count


class PolynomialShift(HyperparameterShift):
    """Sets a hyperparameter to init · (1 - t / max_count)^rate, at least ``target``.

    From call ``max_count`` on it is 0.
    """

    def __init__(
        self,
        attr: str,
        rate: float,
        max_count: int,
        init: float | None = None,
        target: float | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        super().__init__(attr, init, target, optimizer)
        self._rate = rate
        check_count("PolynomialShift: max_count", max_count)
        self._max_count = max_count

    def value(self, init: float, t: int) -> float:
        return init * max(1 - t / self._max_count, 0) ** self._rate
