"""Pixels spread over windows."""

from __future__ import annotations

from renga.core.around_call import overridable
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape
from renga.functions.pooling.unpooling_nd import unpooling_nd


@overridable
def unpooling_2d(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    outsize: tuple[int, int] | None = None,
    cover_all: bool = True,
) -> Variable:
    """Each pixel at every position of its window, summed where windows overlap.

    Sizes are numbers or pairs (rows, columns); ``stride`` is ``ksize`` if None.
    ``outsize`` is (H', W'), the smallest whose pooling has the size of ``x`` if None.

    Shapes:
        x: (N, C, H, W)
        return: (N, C, H', W')

    Raises:
        InvalidType: ``x`` is not an image of floats, or not the pooling of ``outsize``.
    """
    check_floats("unpooling_2d", x)
    check_shape("unpooling_2d", x.ndim == 4, "(N, C, H, W)", x)
    return unpooling_nd(x, ksize, stride, pad, outsize, cover_all)
