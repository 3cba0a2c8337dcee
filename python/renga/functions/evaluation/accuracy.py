"""The share of right answers, and of explained variance."""

from __future__ import annotations

import math
from typing import Any

import numpy

from renga import _core
from renga.core.around_call import reads_elements, tell_counted
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array, as_variable
from renga.functions.check import (
    array_of,
    check_floats,
    check_labels_shape,
    check_shape,
)
from renga.functions.on_host import on_host
from renga.utils.argument import check_choice
from renga.utils.type_check import InvalidType

_INT64, _FLOAT64 = numpy.dtype(numpy.int64), numpy.dtype(numpy.float64)


@reads_elements
def accuracy(y: ArrayLike, t: ArrayLike, ignore_label: int | None = None) -> Variable:
    """The fraction of samples whose largest score is that of the label; no gradient.

    Labels equal to ``ignore_label`` do not count; 0 if all are.

    Shapes:
        y: (N, C, …)
        t: (N, …), integers; axes of one element at the end may be missing
        return: ()

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    y, t = array_of("accuracy", "scores", y), array_of("accuracy", "labels", t)
    if y.dtype.kind != "f" or t.dtype.kind not in "iu":
        raise InvalidType(
            f"accuracy: expected floats and integers, got {y.dtype} and {t.dtype}"
        )
    check_labels_shape("accuracy", y, t)
    if ignore_label is not None:
        tell_counted("accuracy", lambda: t != ignore_label)
    if not isinstance(y, numpy.ndarray):
        return _on_device(as_variable(y), as_variable(t), ignore_label)
    # NumPy compares float16 numbers one by one.
    is_short = y.dtype.itemsize == 2
    found = _core.ops.argmax(y, 1).array if is_short else y.argmax(axis=1)
    right = found.reshape(t.shape) == t
    counted = t.size
    if ignore_label is not None:
        valid = t != ignore_label
        right &= valid
        counted = max(int(valid.sum()), 1)
    fraction = numpy.float64(numpy.count_nonzero(right)) / counted  # NaN of no labels
    return as_variable(numpy.asarray(fraction, y.dtype))


def _on_device(y: Any, t: Any, ignore_label: int | None) -> Variable:
    """The same with operations alone, for which nothing waits."""
    ops = _core.ops
    t = ops.cast(t, _INT64)
    found = ops.cast(ops.reshape(ops.argmax(y, 1), t.shape), _INT64)
    wrong = _is_nonzero(found - t)
    if ignore_label is None:
        return ops.cast(1 - ops.sum(wrong) / max(t.size, 1), y.dtype)
    valid = _is_nonzero(t - ignore_label)
    counted = ops.clip(ops.sum(valid), 1, math.inf)
    return ops.cast(ops.sum(valid * (1 - wrong)) / counted, y.dtype)


def _is_nonzero(x: Variable) -> Variable:
    """1 where an integer is not 0, else 0."""
    return _core.ops.clip(_core.ops.absolute(_core.ops.cast(x, _FLOAT64)), 0, 1)


@reads_elements
@on_host
def binary_accuracy(y: ArrayLike, t: ArrayLike) -> Variable:
    """The fraction of scores whose sign agrees with the label; no gradient.

    Scores of 0 or more predict the label 1, others 0.

    Elements labelled -1 do not count; 0 if all are.

    Shapes:
        y, t: (N, …), t of integers
        return: ()

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    y, t = as_array(y), array_of("binary_accuracy", "labels", t)
    check_floats("binary_accuracy", y)
    check_shape("binary_accuracy", y.shape == t.shape, "one shape", y, t)
    if t.dtype.kind != "i":
        raise InvalidType(f"binary_accuracy: expected t of integers, got {t.dtype}")
    right = numpy.count_nonzero((y >= 0) == t)
    tell_counted("binary_accuracy", lambda: t != -1)
    counted = max(int((t != -1).sum()), 1)
    return as_variable(numpy.asarray(right / counted, y.dtype))


@reads_elements
@on_host
def r2_score(
    pred: ArrayLike,
    true: ArrayLike,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Variable:
    """``1 - sum((pred - true) ** 2) / sum((true - mean) ** 2)``; it has no gradient.

    An output whose true values are all equal scores 0. ``multioutput="raw_values"``
    keeps one score per output.

    Shapes:
        pred, true: (N,) or (N, K)
        return: (), or (K,)

    Raises:
        InvalidType: shapes differ, or arrays are not of floats.
        ValueError: no such ``multioutput``.
        NotImplementedError: there are weights.
    """
    if sample_weight is not None:
        raise NotImplementedError("r2_score: expected no sample_weight")
    averages = "uniform_average", "raw_values"
    check_choice("r2_score: expected multioutput", multioutput, *averages)
    check_floats("r2_score", pred)
    check_floats("r2_score", true)
    check_shape("r2_score", pred.shape == true.shape, "one shape", pred, true)
    dtype = pred.dtype
    pred, true = (as_array(x).astype("d") for x in (pred, true))
    missed = ((pred - true) ** 2).sum(0)
    total = ((true - true.mean(0)) ** 2).sum(0)
    # The mean of equal numbers is rounded, and so their total need not be 0.
    varies = (true != true[:1]).any(0) & (total != 0)
    scores = numpy.where(varies, 1 - missed / numpy.where(varies, total, 1), 0)
    score = scores.mean() if multioutput == "uniform_average" else scores
    return as_variable(numpy.asarray(score, dtype))
