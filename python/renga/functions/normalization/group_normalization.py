"""Normalization of each sample over groups of channels."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.core.variable import Variable
from renga.functions.array.cast import cast
from renga.functions.check import check_floats, check_shape
from renga.functions.normalization.moments import standardized
from renga.utils.extents import check_integer


def group_normalization(
    x: Any, groups: int, gamma: Any, beta: Any, eps: float = 1e-5
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
    if x.dtype.char == "e":  # squares overflow at 256
        x, gamma, beta = (cast(v, "float32") for v in (x, gamma, beta))
        return cast(group_normalization(x, groups, gamma, beta, eps), "float16")
    gamma, beta = cast(gamma, x.dtype), cast(beta, x.dtype)
    ops = _core.ops
    width = x.size // max(x.shape[0] * groups, 1)
    y = standardized(ops.reshape(x, (x.shape[0] * groups, width)), eps)
    gamma, beta = (
        ops.reshape(v, (1, x.shape[1], *(1,) * (x.ndim - 2))) for v in (gamma, beta)
    )
    return ops.add(ops.reshape(y, x.shape) * gamma, beta)
