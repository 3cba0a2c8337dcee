"""Convolution over any number of axes."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.array.cast import cast_floats
from renga.functions.window import over_axes, window_nd


def convolution_nd(
    x: ArrayLike,
    W: ArrayLike,
    b: ArrayLike | None = None,
    stride: Extents = 1,
    pad: Extents = 0,
    cover_all: bool = False,
    dilate: Extents = 1,
    groups: int = 1,
) -> Variable:
    """Convolution (cross-correlation) of n-dimensional images with filters.

    ``stride``, ``pad`` and ``dilate`` are numbers or one number per axis. With
    ``groups`` above 1, channels are convolved in that many separate groups.
    ``cover_all`` adds padding at the end until the windows cover every element.

    The result has the dtype of ``x``, whatever those of ``W`` and ``b``.

    Shapes:
        x: (N, I, d1, …, dn)
        W: (O, I / groups, k1, …, kn)
        b: (O,)
        return: (N, O, d1', …, dn')

    Raises:
        AssertionError: an option has another number of axes.
        InvalidType: shapes or dtypes do not fit.
    """
    W, b = cast_floats("convolution_nd", x, W, b)
    window = window_nd("convolution_nd", x.ndim - 2, stride, pad, dilate, groups)
    return _core.ops.convolution_nd(x, W, b, window, cover_all)


convolution_1d = over_axes(1, "convolution_1d", convolution_nd)
convolution_3d = over_axes(3, "convolution_3d", convolution_nd)
