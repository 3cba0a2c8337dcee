"""Sigmoid-weighted linear units."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.activation.channelwise import spread


def swish(x: ArrayLike, beta: ArrayLike) -> Variable:
    """``x sigmoid(beta x)``.

    Shapes:
        x: (N, C, …)
        beta: any first ones of (C, …)

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: Ramachandran et al., Searching for activation functions, 2017.
    """
    ops = _core.ops
    return ops.multiply(x, ops.sigmoid(ops.multiply(spread("swish", x, beta), x)))
