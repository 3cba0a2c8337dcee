"""Vectors of length 1."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.around_call import reads_elements
from renga.core.variable import Variable
from renga.functions.array.cast import cast
from renga.functions.check import check_axis, check_floats
from renga.functions.on_host import on_host


@reads_elements
@on_host
def normalize(x: Any, eps: float = 1e-5, axis: int | tuple[int, ...] = 1) -> Variable:
    """``x / (|x| + eps)``, lengths taken over the axes.

    The gradient at a vector of zeros is ``gy / eps``.

    Raises:
        InvalidType: there is no such axis, or ``x`` is not of floats.
    """
    check_floats("normalize", x)
    if x.dtype.char == "e":  # squares overflow at 256
        return cast(normalize(cast(x, "float32"), eps, axis), "float16")
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(check_axis("normalize", x, a) for a in axes)
    ops = _core.ops
    squares = ops.sum(ops.square(x), axes, True)
    # The square root has no derivative at 0: lengths of 0 are constants.
    there = squares.array > 0
    root = ops.sqrt(ops.where(there, squares, numpy.ones(squares.shape, x.dtype)))
    return ops.divide(x, root * there + eps)
