"""The learning rate at which a model learns fastest, found by a short trial."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy

from renga.core.optimizer import GradientMethod
from renga.core.optimizer.base import check_optimizer
from renga.core.variable import Variable
from renga.functions.noise.seed import unchanged_generator
from renga.utils.argument import check_count, check_number


@dataclasses.dataclass(frozen=True)
class LRRange:
    """Learning rates in ascending order and the smoothed loss after each update.

    ``suggestion`` is the rate at which the loss falls fastest per factor of the rate;
    NaN if it never falls.
    """

    rates: list[float]
    losses: list[float]
    suggestion: float


def lr_range_test(
    optimizer: GradientMethod,
    batches: Iterable[object],
    low: float = 1e-6,
    high: float = 1.0,
    steps: int = 100,
    loss_func: Callable[..., object] | None = None,
) -> LRRange:
    """Trains a copy of the model while its rate grows from ``low`` to ``high``.

    It ends early where batches end or the loss exceeds four times its least value.
    The model, the optimizer and NumPy's random state stay as they are.

    Args:
        optimizer: set up with the model; its rate is called ``lr`` or ``alpha``.
        batches: tuples, dictionaries or single arrays: the arguments of the loss.
        steps: updates.
        loss_func: called with the copy of the model and a batch; the call of the model
            itself unless given.

    Raises:
        RuntimeError: before ``setup``.
        TypeError: no optimizer, or a loss that is no Variable.
        ValueError: the rates or the optimizer have no range.

    Source: Smith, Cyclical learning rates for training neural networks, 2017.
    """
    check_count("lr_range_test: steps", steps, 2)
    for rate_name, rate in (("low", low), ("high", high)):
        check_number(f"lr_range_test: {rate_name}", rate)
    if not 0 < low < high < math.inf:
        raise ValueError(f"lr_range_test: expected 0 < low < high, got {low}, {high}")
    check_optimizer("lr_range_test", optimizer)
    if optimizer.target is None:
        raise RuntimeError("lr_range_test: expected setup(model) before, got no model")
    # Adam's lr is computed from its alpha.
    name = next((n for n in ("alpha", "lr") if hasattr(optimizer.hyperparam, n)), None)
    if name is None:
        raise ValueError(
            f"lr_range_test: expected an optimizer with a learning rate, got "
            f"{type(optimizer).__name__}"
        )
    trial = copy.deepcopy(optimizer)
    loss_of = trial.target
    if loss_func is not None:
        loss_of = functools.partial(loss_func, trial.target)
    rates: list[float] = []
    losses: list[float] = []
    with unchanged_generator():
        planned = numpy.geomspace(low, high, steps).tolist()
        for rate, batch in zip(planned, batches):
            setattr(trial, name, rate)
            loss = _update(trial, loss_of, batch)
            if not math.isfinite(loss) or loss > 4 * min([loss, *losses]):
                break
            rates.append(rate)
            losses.append(loss)
    smooth = _smoothed(losses)
    return LRRange(rates, smooth, _steepest(rates, smooth))


def _update(optimizer: Any, loss_func: Callable[..., Any], batch: Any) -> float:
    """One update; the loss before it."""
    loss = math.nan

    def observed(*args: object, **kwargs: object) -> Any:
        nonlocal loss
        y = loss_func(*args, **kwargs)
        # The optimizer refuses what is no loss.
        if isinstance(y, Variable) and y.size == 1:
            loss = float(y.array)
        return y

    if isinstance(batch, Mapping):
        optimizer.update(observed, **batch)
    else:
        optimizer.update(observed, *(batch if isinstance(batch, tuple) else (batch,)))
    return loss


def _smoothed(losses: list[float], decay: float = 0.9) -> list[float]:
    """Exponential running means without the bias towards 0 at the beginning."""
    mean, result = 0.0, []
    for i, loss in enumerate(losses):
        mean = decay * mean + (1 - decay) * loss
        result.append(mean / (1 - decay ** (i + 1)))
    return result


def _steepest(rates: list[float], losses: list[float]) -> float:
    if len(rates) < 3:
        return math.nan
    slopes = numpy.gradient(losses, numpy.log(rates))
    best = int(numpy.argmin(slopes))
    # Rounding alone makes a constant loss fall a little.
    falls = slopes[best] < -1e-9 * abs(losses[best])
    return rates[best] if falls else math.nan
