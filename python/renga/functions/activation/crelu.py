"""Concatenated rectifiers."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_axis, check_floats


def crelu(x: ArrayLike, axis: int = 1) -> Variable:
    """``relu(x)`` and ``relu(-x)`` joined along an axis.

    Raises:
        TypeError: the axis is not an integer.
        InvalidType: there is no such axis, or ``x`` is not of floats.

    Source: Shang et al., Understanding and improving convolutional neural networks via
    concatenated rectified linear units, 2016.
    """
    check_floats("crelu", x)
    axis = check_axis("crelu", x, axis)
    ops = _core.ops
    return ops.concat([ops.relu(x), ops.relu(ops.negative(x))], axis)
