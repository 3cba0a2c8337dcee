"""An axis moved to another position."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_axis
from renga.utils.extents import check_integer
from renga.utils.type_check import InvalidType


def rollaxis(x: ArrayLike, axis: int, start: int = 0) -> Variable:
    """``x`` with one axis moved before the axis ``start``.

    Raises:
        TypeError: axis or start is not an integer.
        InvalidType: there is no such axis or position.
    """
    axis = check_axis("rollaxis", x, axis)
    start = check_integer("rollaxis", "start", start)
    if not -x.ndim <= start <= x.ndim:
        raise InvalidType(f"rollaxis: expected a position in {x.shape}, got {start}")
    start = start + x.ndim if start < 0 else start
    order = [other for other in range(x.ndim) if other != axis]
    order.insert(start - (axis < start), axis)
    return _core.ops.transpose(x, order)
