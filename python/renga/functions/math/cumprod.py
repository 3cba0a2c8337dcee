"""Products of all elements up to each."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.core.variable import Variable
from renga.functions.array.cast import cast
from renga.functions.check import check_axis, check_floats


def cumprod(x: Any, axis: int | None = None) -> Variable:
    """Products along an axis of all elements up to each; of the flat array without one.

    The gradient is also correct at zeros: it is computed without division.

    Raises:
        TypeError: the axis is not an integer.
        InvalidType: there is no such axis, or ``x`` is not of floats.
    """
    check_floats("cumprod", x)
    if x.dtype.char == "e":
        return cast(cumprod(cast(x, "float32"), axis), "float16")
    if axis is None:
        x, axis = _core.ops.flatten(x), 0
    axis = check_axis("cumprod", x, axis)
    ops = _core.ops
    n, step = x.shape[axis], 1
    y = ops.reshape(x, x.shape)
    while step < n:  # now each element is a product of 2 step elements
        head, tail = ops.split_axis(y, [step], axis)
        (earlier, _) = ops.split_axis(y, [n - step], axis)
        y = ops.concat([head, ops.multiply(tail, earlier)], axis)
        step *= 2
    return y
