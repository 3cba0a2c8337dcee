"""Pixels spread over windows."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.functions.check import check_floats, check_shape
from renga.functions.pair import as_pair
from renga.utils.conv import get_conv_outsize, get_deconv_outsize
from renga.variable import Variable


def unpooling_2d(
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    outsize: tuple[int, int] | None = None,
    cover_all: bool = True,
) -> Variable:
    """Each pixel at every place of its window, summed where windows overlap.

    Sizes are numbers or pairs (rows, columns); ``stride`` is ``ksize`` if None.
    ``outsize`` is (H', W'), the smallest whose pooling has the size of ``x`` if None.

    Shapes:
        x: (N, C, H, W)
        return: (N, C, H', W')

    Raises:
        InvalidType: ``x`` is no image of floats, or not the pooling of ``outsize``.
    """
    check_floats("unpooling_2d", x)
    check_shape("unpooling_2d", x.ndim == 4, "(N, C, H, W)", x)
    size = as_pair(ksize)
    step = size if stride is None else as_pair(stride)
    border = as_pair(pad)
    if outsize is None:
        outsize = tuple(  # type: ignore
            get_deconv_outsize(n, k, s, p, cover_all)
            for n, k, s, p in zip(x.shape[2:], size, step, border)
        )
    pooled = tuple(
        get_conv_outsize(out, k, s, p, cover_all)
        for out, k, s, p in zip(outsize, size, step, border)  # type: ignore
    )
    check_shape("unpooling_2d", x.shape[2:] == pooled, f"the pixels {pooled}", x)
    rows, columns = (
        _places(*geometry).astype(x.dtype)
        for geometry in zip(outsize, x.shape[2:], size, step, border)  # type: ignore
    )
    ops = _core.ops
    n, c, h, w = x.shape
    y = ops.matmul(ops.reshape(x, (n * c * h, w)), columns, transb=True)
    y = ops.reshape(y, (n * c, h, len(columns)))
    rows = numpy.broadcast_to(rows, (n * c, *rows.shape))
    return ops.reshape(ops.matmul(rows, y), (n, c, *outsize))  # type: ignore


def _places(out: int, n: int, k: int, stride: int, pad: int) -> numpy.ndarray:
    """(out, n): 1 where an element of the output is in a window."""
    offset = numpy.arange(out)[:, None] - (numpy.arange(n) * stride - pad)
    return (offset >= 0) & (offset < k)
