"""Remainders."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats


def fmod(x: ArrayLike, divisor: ArrayLike) -> Variable:
    """The remainder of division, with the sign of ``x``.

    Raises:
        InvalidType: dtypes differ or are not floats.
    """
    check_floats("fmod", x, divisor)
    return _core.ops.fmod(x, divisor)
