"""Another dtype."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.variable import Variable, as_variable


def cast(x: Any, typ: Any) -> Variable:
    """``x`` in dtype ``typ``; itself if it has that already."""
    # Asked of the core in any case: what it holds as bfloat16 shows as float32.
    return _core.ops.cast(as_variable(x), typ)
