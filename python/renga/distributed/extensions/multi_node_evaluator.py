"""An evaluation shared out over the ranks of a communicator."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy

from renga.extensions.evaluator import Evaluator
from renga.methods import is_method_of

# The sum of weight times value, and the sum of the weights.
Sums = dict[str, tuple[float, float]]


def create_multi_node_evaluator(actual_evaluator: Any, communicator: Any) -> Any:
    """Lets ``actual_evaluator`` give the result of all ranks' data on every rank.

    Every example counts once: batches by their size, an example that two ranks hold
    on one of them. So the result is that of one process with the whole data set. An
    evaluator with its own ``evaluate`` counts as many times as it has examples.
    """
    evaluate = actual_evaluator.evaluate
    is_plain = is_method_of(actual_evaluator, Evaluator, "evaluate")

    def evaluate_on_all() -> dict[str, Any]:
        dataset = actual_evaluator.get_iterator("main").dataset
        with _without_repeats(dataset):
            batches: Iterable[Any] = []
            if len(dataset) > 0:
                batches = (
                    actual_evaluator.evaluate_batches()
                    if is_plain
                    else [(evaluate(), len(dataset))]
                )
            sums = weighted_sums(batches)
        return _means(communicator.allgather_obj(sums))

    actual_evaluator.evaluate = evaluate_on_all
    return actual_evaluator


def weighted_sums(batches: Iterable[tuple[Mapping[str, Any], float]]) -> Sums:
    """Sums over pairs of observation and weight.

    A value that is observed as a pair brings its own weight; what is no scalar is
    passed over.
    """
    terms: dict[str, list[tuple[float, float]]] = {}
    for observation, size in batches:
        for key, value in observation.items():
            value, weight = value if isinstance(value, tuple) else (value, size)
            if numpy.ndim(_array(value)) == 0:
                weight = float(_array(weight))
                pair = (weight * float(_array(value)), weight)
                terms.setdefault(key, []).append(pair)
    return {key: _add(pairs) for key, pairs in terms.items()}


def _array(value: Any) -> Any:
    return getattr(value, "array", value)


def _add(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    totals, weights = zip(*pairs)
    return math.fsum(totals), math.fsum(weights)


def _means(parts: list[Sums]) -> dict[str, float]:
    keys = dict.fromkeys(key for part in parts for key in part)
    sums = {key: _add([part[key] for part in parts if key in part]) for key in keys}
    return {key: total / weight for key, (total, weight) in sums.items()}


def _without_repeats(dataset: Any) -> contextlib.AbstractContextManager[Any]:
    """Hides the examples that another rank counts, as deep as they are wrapped."""
    while dataset is not None:
        if hasattr(dataset, "without_repeats"):
            return dataset.without_repeats()
        dataset = getattr(dataset, "_dataset", None)
    return contextlib.nullcontext()
