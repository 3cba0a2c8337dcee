"""Accuracy of classification."""

from __future__ import annotations

from typing import Any

import numpy

from renga.functions.check import check_labels_shape
from renga.placement import reads_elements
from renga.utils.type_check import InvalidType
from renga.variable import Variable, as_array, as_variable


@reads_elements
def accuracy(y: Any, t: Any, ignore_label: int | None = None) -> Variable:
    """The fraction of samples whose largest score is that of the label; no gradient.

    Labels equal to ``ignore_label`` do not count; 0 if all are.

    Shapes:
        y: (N, C, …)
        t: (N, …), integers; axes of one element at the end may be missing
        return: ()

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    y, t = as_array(y), as_array(t)
    if y.dtype.kind != "f" or t.dtype.kind not in "iu":
        raise InvalidType(
            f"accuracy: expected floats and integers, got {y.dtype} and {t.dtype}"
        )
    check_labels_shape("accuracy", y, t)
    right = y.argmax(axis=1).reshape(t.shape) == t
    counted = t.size
    if ignore_label is not None:
        valid = t != ignore_label
        right &= valid
        counted = max(int(valid.sum()), 1)
    fraction = numpy.count_nonzero(right) / counted
    return as_variable(numpy.asarray(fraction, y.dtype))
