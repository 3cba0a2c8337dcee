"""Rectifiers with an upper limit."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats
from renga.utils.extents import check_real


def clipped_relu(x: ArrayLike, z: float = 20.0) -> Variable:
    """``min(max(x, 0), z)``.

    Raises:
        TypeError: ``z`` is not a number.
        InvalidType: ``x`` is not of floats.
    """
    check_floats("clipped_relu", x)
    return _core.ops.clipped_relu(x, check_real("clipped_relu", "z", z))


def relu6(x: ArrayLike) -> Variable:
    """``min(max(x, 0), 6)``.

    Raises:
        InvalidType: ``x`` is not of floats.
    """
    check_floats("clipped_relu", x)
    return _core.ops.clipped_relu(x, 6.0)
