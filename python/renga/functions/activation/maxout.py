"""The largest of several pieces."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_axis, check_floats, check_shape
from renga.utils.extents import check_count


def maxout(x: ArrayLike, pool_size: int, axis: int = 1) -> Variable:
    """The largest of every ``pool_size`` elements along an axis.

    Raises:
        ValueError: ``pool_size`` is below 1.
        InvalidType: the axis is none of ``x`` or no multiple of ``pool_size``.

    Source: Goodfellow et al., Maxout networks, 2013.
    """
    pool_size = check_count("maxout", "pool_size", pool_size)
    check_floats("maxout", x)
    axis = check_axis("maxout", x, axis)
    pools, rest = divmod(x.shape[axis], pool_size)
    check_shape("maxout", rest == 0, f"{pool_size} pieces of axis {axis}", x)
    shape = (*x.shape[:axis], pools, pool_size, *x.shape[axis + 1 :])
    return _core.ops.max(_core.ops.reshape(x, shape), axis + 1)
