"""Largest of points in regions of images."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.variable import Variable
from renga.functions.on_host import on_host
from renga.functions.pooling.roi import (
    as_ratios,
    checked_regions,
    joined,
    samples,
    weighted,
)


@on_host
def roi_max_align_2d(
    x: Any,
    rois: Any,
    roi_indices: Any,
    outsize: Any,
    spatial_scale: float,
    sampling_ratio: Any = None,
) -> Variable:
    """The largest of bilinear samples in each of equal cells of regions of images.

    Arguments are those of ``roi_average_align_2d``. Cells without a point in the image
    are minus infinity.

    Shapes:
        x: (N, C, H, W)
        rois: (R, 4)
        roi_indices: (R,)
        return: (R, C, rows, columns)

    Raises:
        TypeError: ``outsize``, ``spatial_scale`` or ``sampling_ratio`` is invalid.
        InvalidType: shapes or dtypes do not fit.
        IndexError: there is no such image.
        ValueError: a region is not finite.
    """
    name = "roi_max_align_2d"
    args = (name, x, rois, roi_indices, outsize, spatial_scale)
    regions, images, sizes = checked_regions(*args)
    ratios = as_ratios(name, sampling_ratio)
    ops = _core.ops
    ys = []
    for (top, left, bottom, right), image in zip(regions, images):
        axes = zip((top, left), (bottom, right), sizes, x.shape[2:], ratios)
        (rows, columns), counts = zip(*(samples(*axis) for axis in axes))
        points = weighted(x, int(image), rows, columns)
        inside = rows.any(1)[:, None] & columns.any(1)
        outside = numpy.where(inside, 0, -numpy.inf).astype(x.dtype)
        points = ops.add(points, numpy.broadcast_to(outside, points.shape))
        points = ops.expand_dims(points, 0)
        largest = ops.max_pooling_2d(points, (counts, counts, (0, 0)))
        ys.append(ops.squeeze(largest, 0))
    return joined(ys, x, sizes)
