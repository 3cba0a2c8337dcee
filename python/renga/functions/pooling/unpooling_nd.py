"""Elements spread over windows, over any number of axes."""

from __future__ import annotations

import math
from typing import Any

import numpy

from renga import _core
from renga.core.around_call import overridable
from renga.core.variable import Variable
from renga.functions.check import check_shape
from renga.functions.on_host import beside
from renga.functions.pooling.axes import pooling_window_nd
from renga.functions.window import over_axes
from renga.utils.conv import get_conv_outsize, get_deconv_outsize
from renga.utils.conv_nd import as_tuple
from renga.utils.extents import check_counts, check_memory


@overridable
def unpooling_nd(
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    outsize: tuple[int, ...] | None = None,
    cover_all: bool = True,
) -> Variable:
    """Each element at every position of its window, summed where windows overlap.

    Sizes are numbers or one per axis; ``stride`` is ``ksize`` if None. ``outsize`` is
    (d1', …, dn'), the smallest whose pooling has the size of ``x`` if None.

    Shapes:
        x: (N, C, d1, …, dn)
        return: (N, C, d1', …, dn')

    Raises:
        ValueError: a number is out of range.
        InvalidType: ``x`` is not an image of floats, or not the pooling of ``outsize``.
        MemoryError: the result would not fit in memory.
    """
    window = pooling_window_nd("unpooling_nd", x, ksize, stride, pad)
    sizes = x.shape[2:]
    if outsize is None:
        outs = tuple(get_deconv_outsize(*one, cover_all) for one in zip(sizes, *window))
        check_shape("unpooling_nd", min(outs) > 0, "x larger than its padding", x)
    else:
        outs = as_tuple(outsize, len(sizes))
        outs = check_counts("unpooling_nd", "outsize", outs, len(sizes))
    pooled = tuple(get_conv_outsize(*one, cover_all) for one in zip(outs, *window))
    check_shape("unpooling_nd", sizes == pooled, f"the elements {pooled}", x)
    check_memory("unpooling_nd", (*x.shape[:2], *outs), x.dtype)
    for one in zip(outs, sizes):
        check_memory("unpooling_nd", one, int)
    ops = _core.ops
    y = x
    for axis, geometry in enumerate(zip(outs, sizes, *window), 2):
        covers = _window_covers(*geometry).astype(x.dtype)
        before, after = math.prod(y.shape[:axis]), math.prod(y.shape[axis + 1 :])
        shape = (*y.shape[:axis], len(covers), *y.shape[axis + 1 :])
        if after == 1:
            y = ops.reshape(y, (before, y.shape[axis]))
            y = ops.matmul(y, beside(x, covers), transb=True)
        else:
            y = ops.reshape(y, (before, y.shape[axis], after))
            stacked = numpy.broadcast_to(covers, (before, *covers.shape))
            y = ops.matmul(beside(x, stacked), y)
        y = ops.reshape(y, shape)
    return y


def _window_covers(out: int, n: int, k: int, stride: int, pad: int) -> numpy.ndarray:
    """(out, n): whether each element of the output is in each window."""
    offset = numpy.arange(out)[:, None] - (numpy.arange(n) * stride - pad)
    return (offset >= 0) & (offset < k)


unpooling_1d = over_axes(1, "unpooling_1d", unpooling_nd)
unpooling_3d = over_axes(3, "unpooling_3d", unpooling_nd)
