"""Loss of a sequence of labels without their alignment to the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga import _core
from renga.core.around_call import reads_elements
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import cast
from renga.functions.check import array_of, check_floats, checked_indices
from renga.functions.loss.reduction import check_reduce, reduced
from renga.functions.on_host import on_host
from renga.utils.type_check import InvalidType


@reads_elements
@on_host
def connectionist_temporal_classification(
    x: Sequence[ArrayLike],
    t: ArrayLike,
    blank_symbol: int,
    input_length: ArrayLike | None = None,
    label_length: ArrayLike | None = None,
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
    positions = 2 * label_lengths + 1
    loss = _core.ops.alignment_loss(scores, path, lengths, positions, blank_symbol)
    return reduced(cast(loss, "float16") if half else loss, reduce)


def _check(name: str, x: Any, t: Any, blank: Any, reduce: str) -> None:
    if not isinstance(x, (list, tuple)):
        raise TypeError(f"{name}: expected a list or tuple as x, got {type(x)}")
    if not isinstance(blank, int):
        raise TypeError(f"{name}: expected an integer as the blank, got {type(blank)}")
    check_reduce(name, reduce)
    if not x:
        raise InvalidType(f"{name}: expected at least one step in x, got none")
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
