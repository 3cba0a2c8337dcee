"""Mean of squared differences."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import in_nominal_dtype
from renga.functions.check import check_alike
from renga.functions.math.average import mean


def mean_squared_error(x0: ArrayLike, x1: ArrayLike) -> Variable:
    """The mean over all elements of ``(x0 - x1) ** 2``.

    Raises:
        InvalidType: shapes or dtypes differ, or are not floats.
    """
    check_alike("mean_squared_error", x0, x1)
    return mean(_core.ops.squared_difference(in_nominal_dtype(x0), x1))
