"""Mean of windows."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.around_call import overridable, reads_elements
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.on_host import beside
from renga.functions.pooling.axes import pool_all, pooling_window_nd
from renga.functions.window import PoolingWindow, over_axes, pooling_window_2d


@overridable
def average_pooling_2d(
    x: ArrayLike, ksize: Extents, stride: Extents | None = None, pad: Extents = 0
) -> Variable:
    """The mean of each window of an image; padding counts as zeros.

    Sizes are numbers or pairs (rows, columns); ``stride`` is ``ksize`` if None.

    Shapes:
        x: (N, C, H, W)
        return: (N, C, H', W')

    Raises:
        InvalidType: ``x`` is not an image of floats.
    """
    window = pooling_window_2d("average_pooling_2d", ksize, stride, pad)
    return _core.ops.average_pooling_2d(x, window)


@overridable
@reads_elements
def average_pooling_nd(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    pad_value: int | None = 0,
) -> Variable:
    """The mean of each window of an n-dimensional image.

    Sizes are numbers or one per axis; ``stride`` is ``ksize`` if None. Padding counts
    as zeros, or not at all if ``pad_value`` is None.

    Shapes:
        x: (N, C, d1, …, dn)
        return: (N, C, d1', …, dn')

    Raises:
        ValueError: ``pad_value`` is neither 0 nor None.
        InvalidType: ``x`` is not an image of floats.
    """
    window = pooling_window_nd("average_pooling_nd", x, ksize, stride, pad)
    if pad_value not in (0, None):
        raise ValueError(
            f"average_pooling_nd: expected 0 or None as pad_value, got {pad_value}"
        )
    y = pool_all(x, window, _core.ops.average_pooling_2d)
    if pad_value is None:
        inside = _fraction_inside(x.shape[2:], y.shape[2:], window).astype(y.dtype)
        y = _core.ops.divide(y, beside(y, numpy.broadcast_to(inside, y.shape)))
    return y


def _fraction_inside(sizes: Any, outs: Any, window: PoolingWindow) -> numpy.ndarray:
    """The fraction of each window that is not padding, of shape (d1', …, dn')."""
    fraction = numpy.ones(())
    for size, out, k, stride, pad in zip(sizes, outs, *window):
        begin = numpy.arange(out) * stride - pad
        inside = numpy.minimum(begin + k, size) - numpy.maximum(begin, 0)
        fraction = fraction[..., None] * numpy.maximum(inside, 0) / k
    return fraction


average_pooling_1d = over_axes(1, "average_pooling_1d", average_pooling_nd)
average_pooling_3d = over_axes(3, "average_pooling_3d", average_pooling_nd)
