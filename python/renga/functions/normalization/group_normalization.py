"""Normalization over the layer or over groups of channels of each sample."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape
from renga.utils.extents import check_integer


def group_normalization(
    x: ArrayLike, groups: int, gamma: ArrayLike, beta: ArrayLike, eps: float = 1e-5
) -> Variable:
    """``(x - mean) / sqrt(variance + eps) gamma + beta``, moments over each group.

    Shapes:
        x: (N, C, …)
        gamma, beta: (C,), of any float dtype

    Raises:
        TypeError: ``groups`` is not an integer.
        ValueError: the channels cannot be divided into that many groups.
        InvalidType: shapes or dtypes do not fit.

    Source: Wu and He, Group normalization, 2018.
    """
    name = "group_normalization"
    groups = check_integer(name, "groups", groups)
    check_floats(name, x)
    check_floats(name, gamma, beta)
    fits = x.ndim >= 2 and gamma.shape == beta.shape == x.shape[1:2]
    check_shape(name, fits, "(N, C, …), (C,) and (C,)", x, gamma, beta)
    if groups < 1 or x.shape[1] % groups:
        raise ValueError(f"{name}: expected {x.shape[1]} channels in {groups} groups")
    return _core.ops.group_normalization(x, groups, gamma, beta, eps)


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
