"""Largest pixels in regions of images."""

from __future__ import annotations

import math

import numpy

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.check import array_of, check_shape
from renga.functions.on_host import on_host
from renga.functions.pooling.roi import PIXELS, checked_regions


@on_host
def roi_max_pooling_2d(
    x: ArrayLike,
    rois: ArrayLike,
    roi_indices: ArrayLike,
    outsize: Extents,
    spatial_scale: float,
) -> Variable:
    """The largest of the pixels that each of equal cells of regions of images touches.

    A region is (top, left, bottom, right), times ``spatial_scale`` and rounded, in the
    image of index ``roi_indices``. ``outsize`` is the number of cells
    or (rows, columns). Cells outside of the image are minus infinity.

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
    args = ("roi_max_pooling_2d", x, rois, roi_indices, outsize, spatial_scale)
    regions, images, sizes = checked_regions(*args)
    return _core.ops.roi_max_2d(x, regions, images, sizes, PIXELS, -math.inf)


@on_host
def roi_pooling_2d(
    x: ArrayLike, rois: ArrayLike, outh: int, outw: int, spatial_scale: float
) -> Variable:
    """``roi_max_pooling_2d`` of regions (image, left, top, right, bottom).

    The pixels at ``right`` and ``bottom`` belong to the region. Cells outside of the
    image are 0.

    Shapes:
        x: (N, C, H, W)
        rois: (R, 5)
        return: (R, C, outh, outw)

    Raises:
        TypeError: a size or ``spatial_scale`` is invalid.
        InvalidType: shapes or dtypes do not fit.
        IndexError: there is no such image.
        ValueError: a region is not finite.
    """
    rois = array_of("roi_pooling_2d", "regions", rois)
    check_shape("roi_pooling_2d", rois.ndim == 2 and rois.shape[1] == 5, "(R, 5)", rois)
    corners, images = rois[:, [2, 1, 4, 3]], rois[:, 0]
    if not (images == numpy.floor(images)).all() or not numpy.isfinite(images).all():
        raise ValueError(f"roi_pooling_2d: expected integers as images, got {images}")
    with numpy.errstate(invalid="ignore"):  # too large for an index
        images = images.astype(numpy.int64)
    args = ("roi_pooling_2d", x, corners, images, (outh, outw), spatial_scale)
    regions, images, sizes = checked_regions(*args)
    regions = numpy.round(regions) + [0, 0, 1, 1]
    return _core.ops.roi_max_2d(x, regions, images, sizes, PIXELS, 0.0)
