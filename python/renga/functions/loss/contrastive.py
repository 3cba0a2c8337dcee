"""Loss of pairs of similar or dissimilar samples."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.around_call import reads_elements
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import in_nominal_dtype
from renga.functions.check import (
    array_of,
    check_alike,
    check_shape,
    checked_indices,
)
from renga.functions.loss.reduction import check_reduce, reduced
from renga.functions.on_host import on_host
from renga.utils.type_check import InvalidType


@reads_elements
@on_host
def contrastive(
    x0: ArrayLike, x1: ArrayLike, y: ArrayLike, margin: float = 1, reduce: str = "mean"
) -> Variable:
    """Half of ``d ** 2`` where ``y`` is 1, else of ``max(margin - d, 0) ** 2``.

    d is the distance of the two samples.

    Shapes:
        x0, x1: (N, K)
        y: (N,), integers

    Raises:
        ValueError: the margin is not positive, or ``reduce`` is unknown.
        InvalidType: shapes or dtypes do not fit.
        IndexError: a label is neither 0 nor 1.

    Source: Hadsell et al., Dimensionality reduction by learning an invariant mapping,
    2006.
    """
    check_reduce("contrastive", reduce)
    if margin <= 0:
        raise ValueError(f"contrastive: expected a positive margin, got {margin}")
    check_alike("contrastive", x0, x1)
    y = array_of("contrastive", "labels", y)
    fits = x0.ndim == 2 and y.shape == x0.shape[:1]
    check_shape("contrastive", fits, "(N, K), (N, K) and (N,)", x0, x1, y)
    if y.dtype.kind != "i":
        raise InvalidType(f"contrastive: expected y of integers, got {y.dtype}")
    y = checked_indices("contrastive", "y", y, 2)
    ops = _core.ops
    squares = ops.sum(ops.square(ops.subtract(in_nominal_dtype(x0), x1)), 1)
    # The square root has no derivative at 0; the gradient there is defined as 0.
    apart = squares.array > 0
    root = ops.sqrt(ops.where(apart, squares, numpy.ones(y.shape, x0.dtype)))
    gap = ops.relu(margin - root * apart)
    y = y.astype(x0.dtype)
    return reduced((squares * y + ops.square(gap) * (1 - y)) * 0.5, reduce)
