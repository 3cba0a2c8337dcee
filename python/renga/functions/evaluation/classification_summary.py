"""Precision, recall and F score of every class."""

from __future__ import annotations

import numpy

from renga.core.around_call import reads_elements
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable, as_array, as_variable
from renga.functions.check import array_of, check_floats, check_labels_shape
from renga.utils.extents import check_count, check_memory
from renga.utils.type_check import InvalidType


@reads_elements
def classification_summary(
    y: ArrayLike,
    t: ArrayLike,
    label_num: int | None = None,
    beta: float = 1.0,
    ignore_label: int = -1,
) -> tuple[Variable, Variable, Variable, Variable]:
    """Precision, recall, F-beta score (float64) and number (int64) of each class.

    ``label_num`` is the number of classes, one more than the largest label if None.
    Samples labelled ``ignore_label`` do not count; 0 / 0 is NaN.

    Shapes:
        y: (N, C, …)
        t: (N, …), integers
        return: (label_num,) each

    Raises:
        ValueError: ``label_num`` is below 0.
        InvalidType: shapes or dtypes do not fit.
        MemoryError: the result would not fit in memory.
    """
    y, t = as_array(y), array_of("classification_summary", "labels", t)
    check_floats("classification_summary", y)
    if t.dtype.kind != "i":
        raise InvalidType(
            f"classification_summary: expected t of integers, got {t.dtype}"
        )
    check_labels_shape("classification_summary", y, t)
    if label_num is None:
        label_num = int(t.max()) + 1
    label_num = check_count("classification_summary", "label_num", label_num, 0)
    check_memory("classification_summary", (label_num,), float)
    counted = t != ignore_label
    predicted, t = y.argmax(1).reshape(t.shape)[counted], t[counted]

    def count(labels: ArrayLike) -> Array:
        inside = labels[(labels >= 0) & (labels < label_num)]
        return numpy.bincount(inside, minlength=label_num)

    support = count(t)
    right = count(t[predicted == t])
    with numpy.errstate(divide="ignore", invalid="ignore"):
        precision = right / count(predicted)
        recall = right / support
        weight = beta * beta
        score = (1 + weight) * precision * recall / (weight * precision + recall)
    found = (precision, recall, score, support.astype("int64"))
    return tuple(map(as_variable, found))  # type: ignore


@reads_elements
def precision(
    y: ArrayLike, t: ArrayLike, label_num: int | None = None, ignore_label: int = -1
) -> tuple[Variable, Variable]:
    """The fraction of correct predictions of each class, and its number of samples."""
    found, _, _, support = classification_summary(y, t, label_num, 1.0, ignore_label)
    return found, support


@reads_elements
def recall(
    y: ArrayLike, t: ArrayLike, label_num: int | None = None, ignore_label: int = -1
) -> tuple[Variable, Variable]:
    """The fraction of each class's samples predicted correctly, and their number."""
    _, found, _, support = classification_summary(y, t, label_num, 1.0, ignore_label)
    return found, support


@reads_elements
def f1_score(
    y: ArrayLike, t: ArrayLike, label_num: int | None = None, ignore_label: int = -1
) -> tuple[Variable, Variable]:
    """Harmonic mean of each class's precision and recall, and its number of samples."""
    _, _, score, support = classification_summary(y, t, label_num, 1.0, ignore_label)
    return score, support
