"""The dtype of activations that the core may hold as bfloat16."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.core.variable import Variable


def in_nominal_dtype(x: Any) -> Variable:
    """``x`` in the dtype that Python sees; the core may hold it as bfloat16."""
    return _core.ops.cast(x, x.dtype)
