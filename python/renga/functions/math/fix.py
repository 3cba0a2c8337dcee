"""Rounding towards 0."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.core.around_call import reads_elements
from renga.core.variable import Variable
from renga.functions.activation.not_negative import not_negative
from renga.functions.check import check_arrays


@reads_elements
def fix(x: Any) -> Variable:
    """``x`` rounded towards 0; it has no gradient."""
    check_arrays("fix", x)
    ops = _core.ops
    return ops.where(not_negative(x), ops.floor(x), ops.ceil(x))
