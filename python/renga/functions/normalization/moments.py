"""Mean 0 and variance 1."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.functions.math.average import average
from renga.variable import Variable


def standardized(x: Any, axis: int, eps: float) -> Variable:
    """``(x - mean) / sqrt(variance + eps)`` over one axis."""
    centred = _core.ops.subtract(x, average(x, axis, keepdims=True))
    variance = average(_core.ops.square(centred), axis, keepdims=True)
    return centred * _core.ops.rsqrt(variance + eps)
