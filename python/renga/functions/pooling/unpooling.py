"""Pixels spread over windows: the gradients of pooling."""

from __future__ import annotations

import math
from collections.abc import Iterator

from renga import _core
from renga.core.around_call import overridable, reads_elements
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable, as_variable
from renga.functions.check import check_arrays, check_floats, check_shape
from renga.functions.pooling.axes import pool_all, pooling_window_nd
from renga.functions.window import PoolingWindow, as_pair, over_axes
from renga.utils.conv import get_conv_outsize, get_deconv_outsize
from renga.utils.conv_nd import as_tuple
from renga.utils.extents import check_counts, check_memory, check_window


@overridable
@reads_elements
def unpooling_nd(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
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
        if min(outs) <= 0:  # the padding takes all
            outs = tuple(max(n, 0) for n in outs)
            return _core.ops.reshape(as_variable(x)[..., :0], (*x.shape[:2], *outs))
    else:
        outs = as_tuple(outsize, len(sizes), "unpooling_nd", "outsize")
        outs = check_counts("unpooling_nd", "outsize", outs, len(sizes))
    pooled = tuple(get_conv_outsize(*one, cover_all) for one in zip(outs, *window))
    check_shape("unpooling_nd", sizes == pooled, f"the elements {pooled}", x)
    check_memory("unpooling_nd", (*x.shape[:2], *outs), x.dtype)
    extents = _extents_of_images(outs)

    def unpool(image: ArrayLike, window: PoolingWindow) -> Variable:
        return _core.ops.unpooling_2d(image, window, next(extents))

    return pool_all(x, window, unpool)


def _extents_of_images(outs: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Those of the images that ``pool_all`` makes."""
    yield (1, outs[0]) if len(outs) == 1 else (outs[-2], outs[-1])
    for axis in range(len(outs) - 3, -1, -1):
        yield outs[axis], math.prod(outs[axis + 1 :])


unpooling_1d = over_axes(1, "unpooling_1d", unpooling_nd)
unpooling_3d = over_axes(3, "unpooling_3d", unpooling_nd)


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


@overridable
def upsampling_2d(
    x: ArrayLike,
    indexes: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    outsize: tuple[int, int] | None = None,
    cover_all: bool = True,
) -> Variable:
    """Each pixel at one position of its window, zeros elsewhere.

    ``indexes`` are those that ``max_pooling_2d(…, return_indices=True)`` gives. Sizes
    are numbers or pairs (rows, columns); ``stride`` is ``ksize`` if None. Pixels
    outside ``outsize`` are dropped.

    Shapes:
        x, indexes: (N, C, H, W)
        return: (N, C, H', W')

    Raises:
        ValueError: a number is out of range.
        InvalidType: ``x`` is not an image of floats or not the pooling of ``outsize``,
            or indexes have another shape.
        MemoryError: the result would not fit in memory.
        IndexError: an index is none of a window's elements.
    """
    check_arrays("upsampling_2d", x, indexes)
    check_floats("upsampling_2d", x)
    fits = x.ndim == 4 and indexes.shape == x.shape
    check_shape("upsampling_2d", fits, "(N, C, H, W) twice", x, indexes)
    size, step, border = check_window(
        "upsampling_2d",
        2,
        ksize=ksize,
        stride=ksize if stride is None else stride,
        pad=pad,
    )
    window = tuple(zip(size, step, border))
    if outsize is None:
        outs = tuple(
            get_deconv_outsize(n, *one, cover_all)
            for n, one in zip(x.shape[2:], window)
        )
        check_shape("upsampling_2d", min(outs) > 0, "x larger than its padding", x)
    else:
        pair = as_pair(outsize, "upsampling_2d", "outsize")
        outs = check_counts("upsampling_2d", "outsize", pair, 2)
        least, most = (
            tuple(get_conv_outsize(n, *one, cover) for n, one in zip(outs, window))
            for cover in (False, True)
        )
        fits = all(a <= n <= b for a, n, b in zip(least, x.shape[2:], most))
        check_shape("upsampling_2d", fits, f"{least} to {most} pixels", x)
    check_memory("upsampling_2d", (*x.shape[:2], *outs), x.dtype)
    return _core.ops.upsampling_2d(x, indexes, (size, step, border), outs)
