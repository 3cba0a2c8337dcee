"""Largest of points in regions of images."""

from __future__ import annotations

import math

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.on_host import on_host
from renga.functions.pooling.roi import as_ratios, checked_regions


@on_host
def roi_max_align_2d(
    x: ArrayLike,
    rois: ArrayLike,
    roi_indices: ArrayLike,
    outsize: Extents,
    spatial_scale: float,
    sampling_ratio: ArrayLike | None = None,
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
    return _core.ops.roi_max_2d(x, regions, images, sizes, ratios, -math.inf)
