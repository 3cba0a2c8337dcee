"""Gradients of several batches, added up as if they were one batch."""

from __future__ import annotations

import contextlib
import numbers
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

import numpy

from renga.core import reporter
from renga.core.variable import Variable, as_array, check_loss
from renga.dataset.iterator import Iterator


def next_batches(iterator: Iterator, count: int) -> list[Sequence[object]]:
    """The next ``count`` batches, fewer at the end; StopIteration if there is none."""
    batches = [iterator.next()]
    with contextlib.suppress(StopIteration):
        while len(batches) < count:
            batches.append(iterator.next())
    return batches


def accumulate_gradients(
    batches: Sequence[Sequence[object]],
    loss_of: Callable[[Sequence[object]], Variable],
    loss_scale: float | None,
) -> None:
    """Adds the gradient of the mean loss over all examples to the parameters'.

    Each batch's loss, a mean over its examples, is weighted by its share of them.
    Numbers that it reports are reported once, as means with the same weights.

    Args:
        batches: all with ``len``, the number of examples.
        loss_of: the loss of a batch, whose graph is freed before the next is computed.
        loss_scale: factor on the loss in the backward pass.
    """

    def add(batch: Any, share: float) -> None:
        loss = loss_of(batch)
        check_loss("accumulate", loss)
        (loss * share).backward(loss_scale=loss_scale)

    for_each_share(batches, add)


def for_each_share(
    batches: Sequence[Sequence[object]],
    visit: Callable[[Sequence[object], float], None],
) -> None:
    """Calls ``visit(batch, share of all examples)`` for each batch.

    Numbers that it reports are reported once, as means weighted by the shares.
    """
    total = sum(map(len, batches))
    observations = []
    outer = _current_observation()
    for batch in batches:
        observation: dict[str, Any] = {}
        share = len(batch) / total
        with contextlib.ExitStack() as scope:
            if outer is not None:
                scope.enter_context(reporter.report_scope(observation))
            visit(batch, share)
        observations.append((share, observation))
    if outer is not None:
        outer.update(_means(observations))


def _current_observation() -> MutableMapping[str, Any] | None:
    try:
        return reporter.get_current_reporter().observation
    except IndexError:  # training without a trainer
        return None


def _means(observations: list[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    """Means of numbers over those that report them; of anything else the last."""
    means: dict[str, Any] = {}
    shares: dict[str, float] = {}
    for share, observation in observations:
        for key, value in observation.items():
            value = as_array(value)
            if not isinstance(value, (numbers.Real, numpy.ndarray)):
                means[key] = value
                continue
            shares[key] = shares.get(key, 0.0) + share
            means[key] = means.get(key, 0.0) + share * value
    for key, share in shares.items():
        means[key] = means[key] / share
    return means
