"""An evaluation over the data of all ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from renga.communicators import Communicator
from renga.core.statistics import is_scalar
from renga.core.variable import as_array
from renga.extensions.evaluator import Evaluator
from renga.parallel.data.datasets.shard import without_repeats
from renga.parallel.data.extensions.rounds import Rounds
from renga.utils.meta import is_method_of

_Evaluator = TypeVar("_Evaluator")

# The sum of weight times value, and the sum of the weights.
Sums = dict[str, tuple[float, float]]


def create_multi_node_evaluator(
    actual_evaluator: _Evaluator, communicator: Communicator
) -> _Evaluator:
    """Makes ``actual_evaluator`` return the result of all ranks' data on every rank.

    The result is that of one process with the whole data set: batches are weighted by
    their size, and examples that two ranks have are counted on one of them. The result
    of an evaluator with its own ``evaluate`` is weighted by its number of examples.

    Every rank calls it. If training ends on one before another evaluates, the latter
    raises a RuntimeError.
    """
    evaluator: Any = actual_evaluator
    evaluate = evaluator.evaluate
    is_plain = is_method_of(evaluator, Evaluator, "evaluate")
    rounds = Rounds("create_multi_node_evaluator", communicator)
    rounds.end_with(evaluator)

    def evaluate_on_all() -> dict[str, Any]:
        rounds.begin()
        dataset = evaluator.get_iterator("main").dataset
        with without_repeats("create_multi_node_evaluator", dataset, communicator):
            batches: Iterable[Any] = []
            if len(dataset) > 0:
                batches = (
                    evaluator.evaluate_batches()
                    if is_plain
                    else [(evaluate(), len(dataset))]
                )
            sums = weighted_sums(batches)
        rounds.begin()
        return _means(communicator.allgather_obj(sums))

    evaluator.evaluate = evaluate_on_all
    return actual_evaluator


def weighted_sums(batches: Iterable[tuple[Mapping[str, object], float]]) -> Sums:
    """Sums over pairs of observation and weight.

    A value that is observed as a pair is (value, weight). Values that are no scalars
    are skipped.
    """
    terms: dict[str, list[tuple[float, float]]] = {}
    for observation, size in batches:
        for key, value in observation.items():
            value, weight = value if isinstance(value, tuple) else (value, size)
            if is_scalar(as_array(value)):
                weight = float(as_array(weight))
                pair = (weight * float(as_array(value)), weight)
                terms.setdefault(key, []).append(pair)
    return {key: _add(pairs) for key, pairs in terms.items()}


def _add(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    totals, weights = zip(*pairs)
    return math.fsum(totals), math.fsum(weights)


def _means(sums_of_ranks: list[Sums]) -> dict[str, float]:
    keys = sorted({key for own in sums_of_ranks for key in own})
    sums = {
        key: _add([own[key] for own in sums_of_ranks if key in own]) for key in keys
    }
    return {key: total / weight for key, (total, weight) in sums.items()}
