"""Covariance of the units of a layer."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape
from renga.functions.loss.cross_covariance import cross_covariance
from renga.functions.loss.reduction import check_reduce
from renga.functions.on_host import beside


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
