"""Rectifiers whose slope is learnt."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.activation.channelwise import spread


def prelu(x: ArrayLike, W: ArrayLike) -> Variable:
    """``x``, or ``W x`` where ``x`` is negative.

    Shapes:
        x: (N, C, …)
        W: any first ones of (C, …)

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: He et al., Delving deep into rectifiers, 2015.
    """
    return _core.ops.prelu(x, spread("prelu", x, W))
