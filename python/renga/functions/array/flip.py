"""Elements in reverse order."""

from __future__ import annotations

from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.array.get_item import get_item
from renga.functions.check import check_arrays, check_axis, check_shape


def flip(x: ArrayLike, axis: int) -> Variable:
    """``x`` backwards along an axis.

    Raises:
        TypeError: the axis is not an integer.
        InvalidType: there is no such axis.
    """
    axis = check_axis("flip", x, axis)
    backwards = slice(None, None, -1)
    return get_item(as_variable(x), (slice(None),) * axis + (backwards,))


def flipud(a: ArrayLike) -> Variable:
    """``a`` backwards along axis 0.

    Raises:
        InvalidType: there is no axis.
    """
    check_arrays("flipud", a)
    check_shape("flipud", a.ndim >= 1, "1 axis or more", a)
    return flip(a, 0)


def fliplr(a: ArrayLike) -> Variable:
    """``a`` backwards along axis 1.

    Raises:
        InvalidType: there are less than two axes.
    """
    check_arrays("fliplr", a)
    check_shape("fliplr", a.ndim >= 2, "2 axes or more", a)
    return flip(a, 1)
