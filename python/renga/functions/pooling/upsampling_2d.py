"""The inverse of max pooling: pixels returned to the positions of the maxima."""

from __future__ import annotations

from renga import _core
from renga.core.around_call import overridable
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.check import check_arrays, check_floats, check_shape
from renga.functions.window import as_pair
from renga.utils.conv import get_conv_outsize, get_deconv_outsize
from renga.utils.extents import check_counts, check_memory, check_window


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
