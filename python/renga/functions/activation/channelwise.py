"""Parameters that belong to the axes after the batch."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape


def spread(name: str, x: ArrayLike, parameter: ArrayLike) -> Variable:
    """``parameter`` (shaped as axes 1, 2, … of ``x``), reshaped to broadcast to ``x``.

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    check_floats(name, x, parameter)
    extents, axes = x.shape, parameter.shape
    end = 1 + len(axes)
    fits = len(extents) >= end and extents[1:end] == axes
    check_shape(name, fits, "a parameter for axes 1, 2, … of x", x, parameter)
    shape = (1, *axes, *(1,) * (len(extents) - end))
    return _core.ops.reshape(parameter, shape if extents else ())
