"""The size of an array as a vector."""

from __future__ import annotations

from typing import Any

from renga.parameter import Parameter


def squared_norm(param: Any, x: Any) -> float:
    """The sum of the squares of an array of a parameter.

    Of a parameter that is shared out over ranks it is that of the whole: every rank
    has to ask for it.
    """
    xp = param.xp
    x = x.ravel(order="K")
    if x.dtype.itemsize < 4:  # squares of float16 overflow
        x = x.astype(xp.float32)
    square = float(xp.vdot(x, x))
    return param.summed(square) if isinstance(param, Parameter) else square
