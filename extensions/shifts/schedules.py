"""Schedules: what a hyperparameter is at each call."""

from __future__ import annotations

import math
from collections.abc import Sequence

from renga.core.optimizer import Optimizer
from renga.extensions.shifts.hyperparameter_shift import HyperparameterShift
from renga.utils.argument import check_count


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
