"""Mean of absolute differences."""

from __future__ import annotations

from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.loss.absolute_error import absolute_error
from renga.functions.math.average import average


def mean_absolute_error(x0: ArrayLike, x1: ArrayLike) -> Variable:
    """The mean over all elements of ``|x0 - x1|``.

    Raises:
        InvalidType: shapes or dtypes differ, or are not floats.
    """
    return average(absolute_error(x0, x1))
