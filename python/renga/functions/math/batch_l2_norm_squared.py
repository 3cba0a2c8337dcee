"""Lengths of the samples of a batch."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape


def batch_l2_norm_squared(x: ArrayLike) -> Variable:
    """The sum of the squares of each sample.

    Shapes:
        x: (N, …)
        return: (N,)

    Raises:
        InvalidType: ``x`` has less than two axes or is not of floats.
    """
    check_floats("batch_l2_norm_squared", x)
    check_shape("batch_l2_norm_squared", x.ndim >= 2, "(N, …)", x)
    return _core.ops.sum_of_squares(x, tuple(range(1, x.ndim)))
