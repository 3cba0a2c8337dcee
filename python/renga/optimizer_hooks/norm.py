"""Norms of parameters' arrays."""

from __future__ import annotations

from typing import Any

from renga.parameter import Parameter


def squared_norm(param: Any, x: Any) -> float:
    """The sum of the squares of an array of a parameter.

    For a parameter sharded over ranks it is that of the full array: a collective call.
    """
    xp = param.xp
    x = x.ravel(order="K")
    if x.dtype.itemsize < 4:  # squares of float16 overflow
        x = x.astype(xp.float32)
    square = float(xp.vdot(x, x))
    return param.sum_over_shards(square) if isinstance(param, Parameter) else square
