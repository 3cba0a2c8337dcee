"""Another dtype."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.variable import Variable, as_variable


def cast(x: Any, typ: Any) -> Variable:
    """``x`` in dtype ``typ``; itself if it has that already."""
    # Not skipped for equal dtypes: the core's bfloat16 arrays report float32.
    return _core.ops.cast(as_variable(x), typ)
