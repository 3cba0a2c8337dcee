"""Sums and products with a smaller array that is aligned with some axes."""

from __future__ import annotations

from renga import _core
from renga.core.around_call import overridable
from renga.core.configuration import config
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays, check_shape
from renga.utils.extents import check_integer


def aligned(name: str, x: ArrayLike, y: ArrayLike, axis: int) -> Variable:
    """``y`` in a shape that broadcasts to that of ``x``, its first axis at ``axis``.

    Raises:
        InvalidType: shapes do not fit; AssertionError in debug mode.
    """
    check_arrays(name, x, y)
    axis = check_integer(name, "axis", axis)
    end = axis + y.ndim
    fits = 0 <= axis and (y.ndim == 0 or end <= x.ndim)
    fits = fits and all(n in (1, m) for n, m in zip(y.shape, x.shape[axis:end]))
    if config.debug:
        assert fits, f"{name}: expected y to fit to axis {axis} of x"
    check_shape(name, fits, f"y that fits to axis {axis} of x", x, y)
    shape = (*(1,) * axis, *y.shape, *(1,) * (x.ndim - end)) if y.ndim else ()
    return _core.ops.reshape(y, shape)


@overridable
def bias(x: ArrayLike, y: ArrayLike, axis: int = 1) -> Variable:
    """``x + y``, the first axis of ``y`` at ``axis`` of ``x``.

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    return _core.ops.add(x, aligned("bias", x, y, axis))


@overridable
def scale(x: ArrayLike, y: ArrayLike, axis: int = 1) -> Variable:
    """``x y``, the first axis of ``y`` at ``axis`` of ``x``.

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    return _core.ops.multiply(x, aligned("scale", x, y, axis))
