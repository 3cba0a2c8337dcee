"""Linear-chain conditional random fields."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy

from renga import _core
from renga.core.around_call import reads_elements
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array, as_variable
from renga.functions.check import check_arrays, check_floats, checked_indices
from renga.functions.loss.reduction import check_reduce, reduced
from renga.functions.on_host import on_host
from renga.utils.type_check import InvalidType


@reads_elements
@on_host
def crf1d(
    cost: ArrayLike,
    xs: Sequence[ArrayLike],
    ys: Sequence[ArrayLike],
    reduce: str = "mean",
) -> Variable:
    """``-log p(ys | xs)`` of sequences of labels.

    A sequence's score is the sum of ``xs`` at its labels and of ``cost`` at each pair
    of consecutive labels. Step t has the B_t sequences longer than t, sorted by length,
    longest first.

    Shapes:
        cost: (K, K), from the first to the second label
        xs: (B_t, K) for each step
        ys: (B_t,) for each step, integers
        return: (), or (B_1,) if ``reduce`` is "no"

    Raises:
        ValueError: ``reduce`` is unknown.
        InvalidType: shapes or dtypes do not fit.
        IndexError: a label is not below K.

    Source: Lafferty et al., Conditional random fields, 2001.
    """
    check_reduce("crf1d", reduce)
    _check("crf1d", cost, xs)
    check_arrays("crf1d", *ys)
    labels = [as_array(y) for y in ys]
    if [y.shape for y in labels] != [x.shape[:1] for x in xs]:
        raise InvalidType("crf1d: expected one label per row of xs")
    ops = _core.ops
    k = cost.shape[0]
    labels = [checked_indices("crf1d", "ys", y, k) for y in labels]
    alpha, score = xs[0], ops.select_item(xs[0], labels[0])
    flat = ops.reshape(cost, (k * k, 1))
    over: list[Variable] = []
    for before, now, x in zip(labels, labels[1:], xs[1:]):
        if len(x) < len(alpha):
            alpha, ended = ops.split_axis(alpha, [len(x)], 0)
            score, final = ops.split_axis(score, [len(x)], 0)
            over.append(ops.logsumexp(ended, 1) - final)
        ways = ops.add(ops.expand_dims(alpha, 2), cost)
        alpha = ops.add(ops.logsumexp(ways, 1), x)
        pair = before[: len(now)] * k + now
        step = ops.squeeze(ops.embed_id(pair, flat), 1)
        score = ops.add(ops.add(score, step), ops.select_item(x, now))
    over.append(ops.logsumexp(alpha, 1) - score)
    return reduced(ops.concat(over[::-1], 0), reduce)


@reads_elements
@on_host
def argmax_crf1d(
    cost: ArrayLike, xs: Sequence[ArrayLike]
) -> tuple[Variable, list[numpy.ndarray]]:
    """The highest scores and, for each step, the labels that have them.

    The gradient of a score is that of the sum over its labels.

    Shapes:
        cost: (K, K)
        xs: (B_t, K) for each step
        return: (B_1,), and (B_t,) for each step

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    _check("argmax_crf1d", cost, xs)
    found = _core.ops.best_paths(cost, list(xs))
    labels = [step.array for step in found]
    return _score(cost, xs, labels), labels


def _score(cost: Any, xs: Sequence[Any], labels: list[numpy.ndarray]) -> Variable:
    """The differentiable score of the labels of every sequence.

    Steps with as many sequences are added up together.
    """
    ops = _core.ops
    k = cost.shape[0]
    sizes = [len(step) for step in labels]
    scores = ops.select_item(ops.concat(list(xs), 0), numpy.concatenate(labels))
    if len(labels) > 1:
        pairs = [a[: len(b)] * k + b for a, b in zip(labels, labels[1:])]
        flat = ops.reshape(as_variable(cost), (k * k, 1))
        moves = ops.squeeze(ops.embed_id(numpy.concatenate(pairs), flat), 1)
        scores = ops.add(scores, ops.pad(moves, [sizes[0]], [0], 0))
    runs = [(n, sum(1 for _ in same)) for n, same in itertools.groupby(sizes)]
    cuts = [int(cut) for cut in numpy.cumsum([n * steps for n, steps in runs])[:-1]]
    total: Variable | None = None
    for (n, steps), part in zip(runs[::-1], ops.split_axis(scores, cuts, 0)[::-1]):
        here = ops.sum(ops.reshape(part, (steps, n)), 0)
        if total is not None:  # of the sequences that go on
            here = ops.add(here, ops.pad(total, [0], [n - len(total)], 0))
        total = here
    assert total is not None
    return total


def _check(name: str, cost: Any, xs: Sequence[Any]) -> None:
    check_floats(name, cost, *xs)
    k = cost.shape[0] if cost.ndim else 0
    sizes = [x.shape[0] if x.ndim else 0 for x in xs]
    shapes = cost.shape == (k, k) and all(x.shape == (n, k) for n, x in zip(sizes, xs))
    if not shapes or sizes != sorted(sizes, reverse=True):
        raise InvalidType(
            f"{name}: expected cost (K, K) and steps (B_t, K) sorted by length, got "
            f"{cost.shape} and {[x.shape for x in xs]}"
        )
