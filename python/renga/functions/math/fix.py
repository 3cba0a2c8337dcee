"""Rounding towards 0."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.placement import reads_elements
from renga.variable import Variable, as_array


@reads_elements
def fix(x: Any) -> Variable:
    """``x`` rounded towards 0; it has no gradient."""
    ops = _core.ops
    return ops.where(as_array(x) >= 0, ops.floor(x), ops.ceil(x))
