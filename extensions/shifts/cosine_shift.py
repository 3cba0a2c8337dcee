"""Schedules that move a hyperparameter along half waves of a cosine."""

from __future__ import annotations

import math

from renga.core.optimizer import Optimizer
from renga.extensions.shifts.hyperparameter_shift import HyperparameterShift
from renga.utils.argument import check_count


class CosineShift(HyperparameterShift):
    """Moves a hyperparameter from init to ``final`` along half a cosine.

    From call ``max_count`` on it is ``final``.

    Source: Loshchilov and Hutter, SGDR: stochastic gradient descent with warm
    restarts, 2016.
    """

    def __init__(
        self,
        attr: str,
        max_count: int,
        final: float = 0.0,
        init: float | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        super().__init__(attr, init, None, optimizer)
        check_count("CosineShift: max_count", max_count)
        self._max_count = max_count
        self._final = final

    def value(self, init: float, t: int) -> float:
        return _between(init, self._final, t / self._max_count)


class OneCycleShift(HyperparameterShift):
    """Raises a hyperparameter from ``init / 25`` to init, and lowers it to almost 0.

    Both along half a cosine: up in the first part, ``warmup``, of ``max_count`` calls,
    then down to ``init / 250000``.

    Raises:
        ValueError: ``warmup`` is not in (0, 1).

    Source: Smith and Topin, Super-convergence: very fast training of neural networks
    using large learning rates, 2017.
    """

    def __init__(
        self,
        attr: str,
        max_count: int,
        warmup: float = 0.3,
        init: float | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        super().__init__(attr, init, None, optimizer)
        check_count("OneCycleShift: max_count", max_count)
        if not 0 < warmup < 1:
            raise ValueError(
                f"OneCycleShift: expected a warmup between 0 and 1, got {warmup}"
            )
        self._max_count = max_count
        self._peak = warmup * max_count

    def value(self, init: float, t: int) -> float:
        if t < self._peak:
            return _between(init / 25, init, t / self._peak)
        part = (t - self._peak) / (self._max_count - self._peak)
        return _between(init, init / 250000, part)


def _between(first: float, last: float, part: float) -> float:
    """From ``first`` at 0 to ``last`` from 1 on."""
    return last + (first - last) * (1 + math.cos(math.pi * min(part, 1))) / 2
