"""Mean of pixels in regions of images."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.on_host import on_host
from renga.functions.pooling.roi import PIXELS, checked_regions


@on_host
def roi_average_pooling_2d(
    x: ArrayLike,
    rois: ArrayLike,
    roi_indices: ArrayLike,
    outsize: Extents,
    spatial_scale: float,
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
    return _core.ops.roi_average_2d(x, regions, images, sizes, PIXELS)
