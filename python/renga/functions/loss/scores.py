"""The inputs of losses."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.variable import Variable


def in_full(x: Any) -> Variable:
    """``x`` in its nominal dtype: the core may hold float32 arrays as bfloat16."""
    return _core.ops.cast(x, x.dtype)
