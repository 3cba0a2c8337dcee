"""Covariance of two representations."""

from __future__ import annotations

import math

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape
from renga.functions.loss.reduction import check_reduce
from renga.functions.math.average import average


def cross_covariance(
    y: ArrayLike, z: ArrayLike, reduce: str = "half_squared_sum"
) -> Variable:
    """Half of the sum of the squared covariances of the units of ``y`` and ``z``.

    ``reduce="no"`` gives the covariances.

    Shapes:
        y: (N, K)
        z: (N, L)
        return: (), or (K, L)

    Raises:
        ValueError: ``reduce`` is unknown.
        InvalidType: shapes or dtypes do not fit.

    Source: Cheung et al., Discovering hidden factors of variation in deep networks,
    2014.
    """
    check_reduce("cross_covariance", reduce, ("half_squared_sum", "no"))
    check_floats("cross_covariance", y, z)
    fits = y.ndim == z.ndim == 2 and y.shape[0] == z.shape[0]
    check_shape("cross_covariance", fits, "(N, K) and (N, L)", y, z)
    y, z = (_core.ops.subtract(x, average(x, 0, keepdims=True)) for x in (y, z))
    covariance = _core.ops.matmul(y * (1 / max(len(y), 1)), z, transa=True)
    if len(y) == 0:
        covariance = covariance * math.nan  # a mean over no samples
    if reduce == "no":
        return covariance
    return _core.ops.sum(_core.ops.square(covariance)) * 0.5
