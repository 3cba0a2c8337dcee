"""Squared near 0, absolute further out."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import in_nominal_dtype
from renga.functions.check import check_alike
from renga.functions.loss.reduction import check_reduce
from renga.utils.extents import check_real


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
