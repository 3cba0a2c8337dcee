"""The size of an array as a vector."""

from __future__ import annotations

from typing import Any


def squared_norm(xp: Any, x: Any) -> float:
    """The sum of the squares of the elements."""
    x = x.ravel(order="K")
    if x.dtype.itemsize < 4:  # squares of float16 overflow
        x = x.astype(xp.float32)
    return float(xp.vdot(x, x))
