"""A schedule that brings a hyperparameter up to its value gradually."""

from __future__ import annotations

from renga.core.optimizer import Optimizer
from renga.extensions.shifts.hyperparameter_shift import HyperparameterShift


class WarmupShift(HyperparameterShift):
    """Moves a hyperparameter from ``warmup_start`` to ``init`` in warmup_iter calls.

    After that it leaves the hyperparameter alone, so that another schedule may act.
    """

    def __init__(
        self,
        attr: str,
        warmup_start: float,
        warmup_iter: int,
        init: float,
        optimizer: Optimizer | None = None,
    ) -> None:
        super().__init__(attr, init, optimizer=optimizer)
        self._warmup_start = warmup_start
        self._warmup_iter = warmup_iter

    def value(self, init: float, t: int) -> float | None:
        if t > self._warmup_iter:
            return None
        if t == self._warmup_iter:
            return init
        start = self._warmup_start
        return start + (init - start) * t / self._warmup_iter
