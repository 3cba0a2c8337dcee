"""Pixels put back where max pooling found them."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.functions.array.get_item import PutItems
from renga.functions.check import check_floats, check_shape
from renga.functions.pair import as_pair
from renga.functions.whole_images import of_whole_images
from renga.utils.conv import get_deconv_outsize
from renga.variable import Variable, as_array


@of_whole_images
def upsampling_2d(
    x: Any,
    indexes: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    outsize: tuple[int, int] | None = None,
    cover_all: bool = True,
) -> Variable:
    """Each pixel at one place of its window, zeros elsewhere; the inverse of maxima.

    ``indexes`` are those that ``max_pooling_2d(…, return_indices=True)`` gives. Sizes
    are numbers or pairs (rows, columns); ``stride`` is ``ksize`` if None. Pixels of
    places outside ``outsize`` are dropped.

    Shapes:
        x, indexes: (N, C, H, W)
        return: (N, C, H', W')

    Raises:
        InvalidType: ``x`` is no image of floats, or indexes have another shape.
    """
    indexes = as_array(indexes)
    check_floats("upsampling_2d", x)
    fits = x.ndim == 4 and indexes.shape == x.shape
    check_shape("upsampling_2d", fits, "(N, C, H, W) twice", x, indexes)
    size = as_pair(ksize)
    step = size if stride is None else as_pair(stride)
    border = as_pair(pad)
    if outsize is None:
        outsize = tuple(  # type: ignore
            get_deconv_outsize(n, k, s, p, cover_all)
            for n, k, s, p in zip(x.shape[2:], size, step, border)
        )
    n, c, h, w = numpy.indices(x.shape, sparse=True)
    rows = h * step[0] + indexes // size[1] - border[0]
    columns = w * step[1] + indexes % size[1] - border[1]
    # A margin on every side takes what falls outside.
    margin = max(size) + max(border)
    wide = tuple(extent + 2 * margin for extent in outsize)  # type: ignore
    keys = (n, c, rows + margin, columns + margin)
    (y,) = PutItems(keys, (*x.shape[:2], *wide)).apply((x,))
    ranges = [(0, extent, 1) for extent in x.shape[:2]]
    ranges += [(margin, extent, 1) for extent in outsize]  # type: ignore
    return _core.ops.slice(y, ranges)
