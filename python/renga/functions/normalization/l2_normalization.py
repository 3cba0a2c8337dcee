"""Vectors of length 1."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_axis, check_floats


def normalize(
    x: ArrayLike, eps: float = 1e-5, axis: int | tuple[int, ...] = 1
) -> Variable:
    """``x / (|x| + eps)``, lengths taken over the axes.

    The gradient at a vector of zeros is ``gy / eps``.

    Raises:
        InvalidType: there is no such axis, or ``x`` is not of floats.
    """
    check_floats("normalize", x)
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(check_axis("normalize", x, a) for a in axes)
    return _core.ops.normalize(x, eps, axes)
