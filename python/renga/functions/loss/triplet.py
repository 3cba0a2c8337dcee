"""Loss of samples nearer to a negative than to a positive one."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import in_nominal_dtype
from renga.functions.check import check_alike
from renga.functions.loss.reduction import check_reduce, reduced


def triplet(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    margin: float = 0.2,
    reduce: str = "mean",
) -> Variable:
    """``max(|anchor - positive|² - |anchor - negative|² + margin, 0)``.

    Shapes:
        anchor, positive, negative: (N, K)

    Raises:
        ValueError: the margin is not positive, or ``reduce`` is unknown.
        InvalidType: shapes or dtypes differ, or are not floats.

    Source: Schroff et al., FaceNet, 2015.
    """
    check_reduce("triplet", reduce)
    if margin <= 0:
        raise ValueError(f"triplet: expected a positive margin, got {margin}")
    check_alike("triplet", anchor, positive, negative)
    ops, anchor = _core.ops, in_nominal_dtype(anchor)
    near = ops.square(ops.subtract(anchor, positive))
    far = ops.square(ops.subtract(anchor, negative))
    return reduced(ops.relu(ops.sum(near - far, 1) + margin), reduce)
