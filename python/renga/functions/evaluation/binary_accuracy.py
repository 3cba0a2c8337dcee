"""Accuracy of binary classification."""

from __future__ import annotations

import numpy

from renga.core.around_call import reads_elements, tell_counted
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array, as_variable
from renga.functions.check import array_of, check_floats, check_shape
from renga.functions.on_host import on_host
from renga.utils.type_check import InvalidType


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
