"""Differences of two arrays, element by element and on average."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import in_nominal_dtype
from renga.functions.check import check_alike
from renga.functions.loss.reduction import check_reduce
from renga.functions.math.average import average, mean
from renga.utils.extents import check_real


def absolute_error(x0: ArrayLike, x1: ArrayLike) -> Variable:
    """``|x0 - x1|``, element by element.

    Raises:
        InvalidType: shapes or dtypes differ, or are not floats.
    """
    check_alike("absolute_error", x0, x1)
    return _core.ops.absolute(_core.ops.subtract(in_nominal_dtype(x0), x1))


def squared_difference(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """``(x1 - x2) ** 2``, element by element.

    Raises:
        InvalidType: shapes or dtypes differ, or are not floats.
    """
    check_alike("squared_difference", x1, x2)
    return _core.ops.squared_difference(x1, x2)


def squared_error(x0: ArrayLike, x1: ArrayLike) -> Variable:
    """``(x0 - x1) ** 2``, element by element.

    Raises:
        InvalidType: shapes or dtypes differ, or are not floats.
    """
    return squared_difference(x0, x1)


def mean_absolute_error(x0: ArrayLike, x1: ArrayLike) -> Variable:
    """The mean over all elements of ``|x0 - x1|``.

    Raises:
        InvalidType: shapes or dtypes differ, or are not floats.
    """
    return average(absolute_error(x0, x1))


def mean_squared_error(x0: ArrayLike, x1: ArrayLike) -> Variable:
    """The mean over all elements of ``(x0 - x1) ** 2``.

    Raises:
        InvalidType: shapes or dtypes differ, or are not floats.
    """
    check_alike("mean_squared_error", x0, x1)
    return mean(_core.ops.squared_difference(in_nominal_dtype(x0), x1))


def huber_loss(
    x: ArrayLike, t: ArrayLike, delta: float, reduce: str = "sum_along_second_axis"
) -> Variable:
    """``d ** 2 / 2`` of the difference d, or ``delta (|d| - delta / 2)`` beyond delta.

    It is summed along axis 1; ``reduce="no"`` keeps one loss per element.

    Raises:
        TypeError: ``delta`` is not a number.
        InvalidType: shapes or dtypes differ, or are not floats.
        ValueError: ``reduce`` is unknown.

    Source: Huber, Robust estimation of a location parameter, 1964.
    """
    check_reduce("huber_loss", reduce, ("sum_along_second_axis", "no"))
    check_alike("huber_loss", x, t)
    delta = check_real("huber_loss", "delta", delta)
    loss = _core.ops.huber(in_nominal_dtype(x), in_nominal_dtype(t), delta)
    return loss if reduce == "no" else _core.ops.sum(loss, 1)
