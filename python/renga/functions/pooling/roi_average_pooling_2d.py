"""Mean of pixels in regions of images."""

from __future__ import annotations

from typing import Any

import numpy

from renga.core.variable import Variable
from renga.functions.on_host import on_host
from renga.functions.pooling.roi import cells, checked_regions, joined, weighted


@on_host
def roi_average_pooling_2d(
    x: Any, rois: Any, roi_indices: Any, outsize: Any, spatial_scale: float
) -> Variable:
    """The mean of the pixels that each of equal cells of regions of images touches.

    A region is (top, left, bottom, right), times ``spatial_scale`` and rounded, in the
    image of index ``roi_indices``. ``outsize`` is the number of cells
    or (rows, columns). Cells outside of the image are 0.

    Shapes:
        x: (N, C, H, W)
        rois: (R, 4)
        roi_indices: (R,)
        return: (R, C, rows, columns)

    Raises:
        TypeError: ``outsize`` or ``spatial_scale`` is invalid.
        InvalidType: shapes or dtypes do not fit.
        IndexError: there is no such image.
        ValueError: a region is not finite.
    """
    args = ("roi_average_pooling_2d", x, rois, roi_indices, outsize, spatial_scale)
    regions, images, sizes = checked_regions(*args)
    ys = []
    for (top, left, bottom, right), image in zip(regions, images):
        rows = _means(cells(top, bottom, sizes[0], x.shape[2]), x.shape[2])
        columns = _means(cells(left, right, sizes[1], x.shape[3]), x.shape[3])
        ys.append(weighted(x, int(image), rows, columns))
    return joined(ys, x, sizes)


def _means(spans: list[tuple[int, int]], size: int) -> numpy.ndarray:
    weights = numpy.zeros((len(spans), size))
    for row, (begin, end) in zip(weights, spans):
        if begin < end:
            row[begin:end] = 1 / (end - begin)
    return weights
