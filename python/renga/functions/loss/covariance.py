"""Covariances of features as losses."""

from __future__ import annotations

import math

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape
from renga.functions.loss.reduction import check_reduce
from renga.functions.math.average import average
from renga.functions.on_host import beside


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


def decov(h: ArrayLike, reduce: str = "half_squared_sum") -> Variable:
    """Half of the sum of the squared covariances of different units.

    ``reduce="no"`` gives the covariances, with 0 for those of a unit with itself.

    Shapes:
        h: (N, K)
        return: (), or (K, K)

    Raises:
        ValueError: ``reduce`` is unknown.
        InvalidType: ``h`` has not two axes or is not of floats.

    Source: Cogswell et al., Reducing overfitting in deep networks by decorrelating
    representations, 2015.
    """
    check_reduce("decov", reduce, ("half_squared_sum", "no"))
    check_floats("decov", h)
    check_shape("decov", h.ndim == 2, "(N, K)", h)
    others = 1 - numpy.eye(h.shape[1], dtype=h.dtype)
    covariance = cross_covariance(h, h, "no") * beside(h, others)
    if reduce == "no":
        return covariance
    return _core.ops.sum(_core.ops.square(covariance)) * 0.5
