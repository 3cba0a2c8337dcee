"""Two-dimensional dilated convolution."""

from __future__ import annotations

from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.connection.convolution_2d import convolution_2d


def dilated_convolution_2d(
    x: ArrayLike,
    W: ArrayLike,
    b: ArrayLike | None = None,
    stride: Extents = 1,
    pad: Extents = 0,
    dilate: Extents = 1,
    cover_all: bool = False,
) -> Variable:
    """``convolution_2d`` with the arguments in another order.

    Shapes:
        x: (N, I, H, W)
        W: (O, I, kh, kw)
        b: (O,)
        return: (N, O, H', W')

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    return convolution_2d(x, W, b, stride, pad, cover_all, dilate=dilate)
