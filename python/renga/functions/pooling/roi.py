"""Pooling of regions of images."""

from __future__ import annotations

import math
from typing import Any

import numpy

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable, as_array
from renga.functions.check import array_of, check_arrays, check_shape, checked_indices
from renga.functions.on_host import on_host
from renga.utils.extents import check_memory
from renga.utils.type_check import InvalidType

# Each pixel that a cell touches is a point.
PIXELS = [-1, -1]


def checked_regions(
    name: str,
    x: ArrayLike,
    rois: ArrayLike,
    roi_indices: ArrayLike,
    outsize: Extents,
    spatial_scale: float,
) -> tuple[numpy.ndarray, numpy.ndarray, tuple[int, int]]:
    """The regions in pixels, their images, and the rows and columns they become.

    Raises:
        TypeError: ``outsize`` or ``spatial_scale`` is not a number, or not above 0.
        InvalidType: shapes or dtypes do not fit.
        IndexError: there is no such image.
        ValueError: a region is not finite.
        MemoryError: the result would be larger than the memory of this machine.
    """
    sizes = as_positive_pair(name, "outsize", outsize)
    if not (
        _is_integer(spatial_scale) or isinstance(spatial_scale, (float, numpy.floating))
    ):
        raise TypeError(
            f"{name}: expected a number as spatial_scale, got {spatial_scale}"
        )
    if not spatial_scale > 0:
        raise TypeError(
            f"{name}: expected a spatial_scale above 0, got {spatial_scale}"
        )
    check_arrays(name, x, rois, roi_indices)
    rois, roi_indices = as_array(rois), as_array(roi_indices)
    fits = x.ndim == 4 and 0 not in x.shape[2:]
    fits = fits and rois.ndim == 2 and rois.shape[1:] == (4,)
    if not fits or roi_indices.shape != rois.shape[:1]:
        raise InvalidType(
            f"{name}: expected images (N, C, H, W), regions (R, 4) and their images "
            f"(R,), got {x.shape}, {rois.shape} and {roi_indices.shape}"
        )
    of_one = x.dtype.kind == "f" and rois.dtype.char == x.dtype.char
    if not of_one or roi_indices.dtype.kind != "i":
        raise InvalidType(
            f"{name}: expected images and regions of one float dtype and integers, got "
            f"{x.dtype}, {rois.dtype} and {roi_indices.dtype}"
        )
    check_memory(name, (len(rois), x.shape[1], *sizes), x.dtype)
    images = checked_indices(name, "roi_indices", roi_indices, len(x))
    with numpy.errstate(over="ignore"):
        regions = rois.astype(float) * spatial_scale
    if not numpy.isfinite(regions).all():
        raise ValueError(f"{name}: expected finite regions, got {rois}")
    return regions, images, sizes


def as_positive_pair(name: str, option: str, value: Extents) -> tuple[int, int]:
    """(rows, columns); TypeError unless both are integers above 0."""
    pair = value if isinstance(value, (tuple, list)) else (value, value)
    if len(pair) != 2 or not all(_is_integer(v) and v > 0 for v in pair):
        raise TypeError(
            f"{name}: expected an integer above 0 or a pair of them as {option}, "
            f"got {value}"
        )
    return int(pair[0]), int(pair[1])


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, numpy.integer)) and not isinstance(value, bool)


def as_ratios(name: str, sampling_ratio: object) -> list[int]:
    """[along rows, along columns], 0 for None; TypeError unless integers above 0."""
    if not isinstance(sampling_ratio, (tuple, list)):
        sampling_ratio = (sampling_ratio, sampling_ratio)
    given = tuple(1 if ratio is None else ratio for ratio in sampling_ratio)
    as_positive_pair(name, "sampling_ratio", given)
    # Larger numbers than the core takes are too many for it, too.
    return [min(ratio or 0, 1 << 31) for ratio in sampling_ratio]


@on_host
def roi_average_align_2d(
    x: ArrayLike,
    rois: ArrayLike,
    roi_indices: ArrayLike,
    outsize: Extents,
    spatial_scale: float,
    sampling_ratio: ArrayLike | None = None,
) -> Variable:
    """The mean of bilinear samples in each of equal cells of regions of images.

    A region is (top, left, bottom, right), times ``spatial_scale``, in the image of
    index ``roi_indices``. ``outsize`` is the number of cells or (rows,
    columns). Each cell has ``sampling_ratio`` points along each axis, a number or a
    pair; None means one per pixel.

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

    Source: He et al., Mask R-CNN, 2017.
    """
    name = "roi_average_align_2d"
    args = (name, x, rois, roi_indices, outsize, spatial_scale)
    regions, images, sizes = checked_regions(*args)
    ratios = as_ratios(name, sampling_ratio)
    return _core.ops.roi_average_2d(x, regions, images, sizes, ratios)


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
