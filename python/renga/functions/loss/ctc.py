"""Loss of a sequence of labels without their alignment to the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga import _core
from renga.core.around_call import reads_elements
from renga.core.variable import Variable
from renga.functions.array.cast import cast
from renga.functions.array.get_item import get_item
from renga.functions.check import array_of, check_floats, checked_indices
from renga.functions.loss.reduction import check_reduce, reduced
from renga.functions.on_host import on_host
from renga.utils.type_check import InvalidType

# The logarithm of probability 0, finite so that sums with it do not overflow.
_NEVER = -1e10


@reads_elements
@on_host
def connectionist_temporal_classification(
    x: Sequence[Any],
    t: Any,
    blank_symbol: int,
    input_length: Any = None,
    label_length: Any = None,
    reduce: str = "mean",
) -> Variable:
    """``-log p(t | x)``, where p is a sum over all alignments of labels and steps.

    Each step emits one label or the blank; a label may last several steps, and equal
    consecutive labels have a blank between them. Lengths are the full ones if None.

    Shapes:
        x: for each step (N, labels), before the softmax
        t: (N, L), integers
        input_length, label_length: (N,), integers
        return: (), or (N,) if ``reduce`` is "no"

    Raises:
        TypeError: ``x`` is not a list or tuple, or the blank not an integer.
        ValueError: the blank is not a label, or ``reduce`` is unknown.
        InvalidType: shapes or dtypes do not fit.
        IndexError: a used label is not one of those of ``x``, or a length exceeds the
            steps or the labels.

    Source: Graves et al., Connectionist temporal classification, 2006.
    """
    name = "connectionist_temporal_classification"
    t = array_of(name, "labels", t)
    _check(name, x, t, blank_symbol, reduce)
    steps, (n, labels) = len(x), t.shape
    if input_length is None:
        input_length = numpy.full(n, steps)
    if label_length is None:
        label_length = numpy.full(n, labels)
    lengths = _checked_lengths(name, "input_length", input_length, n, steps)
    label_lengths = _checked_lengths(name, "label_length", label_length, n, labels)
    if not lengths.all():
        raise IndexError(f"{name}: expected input_length of at least 1, got 0")
    # Values after the last label of a sample are ignored.
    counted = numpy.arange(labels) < label_lengths[:, None]
    t = checked_indices(name, "t", numpy.where(counted, t, blank_symbol), x[0].shape[1])
    path = numpy.full((n, 2 * labels + 1), blank_symbol)
    path[:, 1::2] = t
    scores = _core.ops.stack(list(x), 0)
    half = scores.dtype.char == "e"
    if half:
        scores = cast(scores, "float32")
    scores = _core.ops.log_softmax(scores, 2)
    scores = get_item(scores, (slice(None), numpy.arange(n)[:, None], path))
    alpha = _alpha(scores, path, blank_symbol, lengths)
    loss = -_at_end(alpha, label_lengths)
    return reduced(cast(loss, "float16") if half else loss, reduce)


def _check(name: str, x: Any, t: Any, blank: Any, reduce: str) -> None:
    if not isinstance(x, (list, tuple)):
        raise TypeError(f"{name}: expected a list or tuple as x, got {type(x)}")
    if not isinstance(blank, int):
        raise TypeError(f"{name}: expected an integer as the blank, got {type(blank)}")
    check_reduce(name, reduce)
    check_floats(name, *x)
    first = x[0].shape
    if len(first) != 2 or any(step.shape != first for step in x):
        raise InvalidType(f"{name}: expected steps of one shape (N, labels)")
    if not 0 <= blank < first[1]:
        raise ValueError(f"{name}: expected a blank below {first[1]}, got {blank}")
    if t.ndim != 2 or len(t) != first[0] or t.dtype.kind != "i":
        raise InvalidType(
            f"{name}: expected t of integers ({first[0]}, L), got {t.dtype} {t.shape}"
        )


def _checked_lengths(
    name: str, what: str, lengths: Any, n: int, longest: int
) -> numpy.ndarray:
    lengths = array_of(name, what, lengths)
    if lengths.shape != (n,):
        raise InvalidType(f"{name}: expected {what} of ({n},), got {lengths.shape}")
    return checked_indices(name, what, lengths, longest + 1)


def _alpha(
    scores: Variable, path: numpy.ndarray, blank: int, lengths: numpy.ndarray
) -> Variable:
    """(N, S): log probability of each position of the path after all steps."""
    ops = _core.ops
    start = numpy.full(path.shape, _NEVER, scores.dtype)
    start[:, :2] = 0
    # From two positions before: a blank between different labels may be skipped.
    skip = numpy.full(path.shape, _NEVER, scores.dtype)
    skip[:, 2:][(path[:, 2:] != blank) & (path[:, 2:] != path[:, :-2])] = 0
    first, *rest = ops.split_axis(scores, list(range(1, len(scores))), 0)
    alpha = ops.add(ops.squeeze(first, 0), start)
    for number, step in enumerate(rest, 1):
        ways = [alpha, _shifted(alpha, 1), ops.add(_shifted(alpha, 2), skip)]
        fresh = ops.logsumexp(ops.stack(ways, 0), 0)
        fresh = ops.add(fresh, ops.squeeze(step, 0))
        going = numpy.broadcast_to((number < lengths)[:, None], path.shape)
        alpha = fresh if going.all() else ops.where(going, fresh, alpha)
    return alpha


def _shifted(alpha: Variable, shift: int) -> Variable:
    """``alpha`` shifted along the path, filled with probability 0 at the start."""
    n, size = alpha.shape
    shift = min(shift, size)
    remaining = _core.ops.slice(alpha, [(0, n, 1), (0, size - shift, 1)])
    return _core.ops.pad(remaining, [0, shift], [0, 0], _NEVER)


def _at_end(alpha: Variable, label_lengths: numpy.ndarray) -> Variable:
    """(N,): log probability of the last label or the blank after it."""
    positions = numpy.arange(alpha.shape[1])
    last = 2 * label_lengths[:, None]
    ends = (positions == last) | (positions == last - 1)
    mask = numpy.where(ends, 0, _NEVER).astype(alpha.dtype)
    return _core.ops.logsumexp(_core.ops.add(alpha, mask), 1)
