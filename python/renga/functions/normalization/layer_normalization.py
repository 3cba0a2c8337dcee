"""Normalization of each sample over its last axes."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats


def layer_normalization(
    x: ArrayLike, gamma: ArrayLike, beta: ArrayLike, eps: float = 1e-5
) -> Variable:
    """``(x - mean) / sqrt(variance + eps) gamma + beta``, moments over the last axes.

    Shapes:
        x: (…, C)
        gamma, beta: (C,), or several of the last axes of x

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: Ba et al., Layer normalization, 2016.
    """
    check_floats("layer_normalization", x)
    check_floats("layer_normalization", gamma, beta)
    return _core.ops.layer_normalization(x, gamma, beta, eps)
