"""Products along an axis with a smaller array."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.core.variable import Variable
from renga.functions.math.along_axis import aligned


def scale(x: Any, y: Any, axis: int = 1) -> Variable:
    """``x y``, the first axis of ``y`` at ``axis`` of ``x``.

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    return _core.ops.multiply(x, aligned("scale", x, y, axis))
