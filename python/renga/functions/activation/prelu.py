"""Rectifiers whose slope is learnt."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.core.around_call import reads_elements
from renga.core.variable import Variable
from renga.functions.activation.channelwise import spread
from renga.functions.activation.not_negative import not_negative


@reads_elements
def prelu(x: Any, W: Any) -> Variable:
    """``x``, or ``W x`` where ``x`` is negative.

    Shapes:
        x: (N, C, …)
        W: any first ones of (C, …)

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: He et al., Delving deep into rectifiers, 2015.
    """
    slope = spread("prelu", x, W)
    return _core.ops.where(not_negative(x), x, _core.ops.multiply(slope, x))
