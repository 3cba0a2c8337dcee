"""An array split into its slices."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_axis


def separate(x: ArrayLike, axis: int = 0) -> tuple[Variable, ...]:
    """The slices of ``x`` along an axis, without that axis.

    Raises:
        InvalidType: there is no such axis.
    """
    return tuple(_core.ops.separate(x, check_axis("separate", x, axis)))
