"""Mean of squared differences."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.functions.loss.scores import in_full
from renga.functions.math.average import mean
from renga.utils.type_check import InvalidType
from renga.variable import Variable


def mean_squared_error(x0: Any, x1: Any) -> Variable:
    """The mean over all elements of ``(x0 - x1) ** 2``.

    Raises:
        InvalidType: shapes or dtypes differ, or are no floats.
    """
    if x0.shape != x1.shape or x0.dtype != x1.dtype or x0.dtype.kind != "f":
        raise InvalidType(
            "mean_squared_error: expected floats of one shape and dtype, got "
            f"{x0.shape} {x0.dtype} and {x1.shape} {x1.dtype}"
        )
    return mean(_core.ops.square(_core.ops.subtract(in_full(x0), x1)))
