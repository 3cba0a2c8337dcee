"""Another dtype."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.variable import Variable, as_variable


def cast(x: Any, typ: Any) -> Variable:
    """``x`` in dtype ``typ``; itself if it has that already."""
    return as_variable(x) if x.dtype == typ else _core.ops.cast(x, typ)
