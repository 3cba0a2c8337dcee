"""Norms of parameters' arrays."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.parameter import Parameter
from renga.variable import as_variable


def squared_norm(param: Any, x: Any) -> float:
    """The sum of the squares of an array of a parameter.

    For a parameter sharded over ranks it is that of the full array: a collective call.
    """
    if x.dtype.itemsize < 4:  # squares of float16 overflow
        x = x.astype(numpy.float32)
    if isinstance(x, numpy.ndarray):
        x = x.ravel(order="K")
        square = float(numpy.vdot(x, x))
    else:
        square = float(_core.ops.sum(_core.ops.square(as_variable(x))).item())
    return param.sum_over_shards(square) if isinstance(param, Parameter) else square
