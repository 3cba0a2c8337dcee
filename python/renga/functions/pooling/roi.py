"""Regions of interest: checks and sampling for their poolings."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.variable import Variable, as_array
from renga.functions.check import check_arrays, checked_indices
from renga.utils.extents import check_memory
from renga.utils.type_check import InvalidType

# Points of a region along an axis; more mean that its coordinates are wrong.
MOST_POINTS = 1 << 15


def checked_regions(
    name: str, x: Any, rois: Any, roi_indices: Any, outsize: Any, spatial_scale: Any
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


def as_positive_pair(name: str, option: str, value: Any) -> tuple[int, int]:
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


def cells(begin: float, end: float, out: int, size: int) -> list[tuple[int, int]]:
    """The range of pixels, of ``size``, that each of ``out`` equal cells overlaps."""
    start = int(numpy.round(begin))
    step = max(int(numpy.round(end)) - start, 1) / out
    found = []
    for cell in range(out):
        first = start + int(numpy.floor(cell * step))
        last = start + int(numpy.ceil((cell + 1) * step))
        found.append((min(max(first, 0), size), min(max(last, 0), size)))
    return found


def weighted(
    x: Any, image: int, rows: numpy.ndarray, columns: numpy.ndarray
) -> Variable:
    """``rows x[image] columns^T`` for each channel, over nonzero weights only."""
    ops = _core.ops
    (top, bottom), (left, right) = _extent(rows), _extent(columns)
    ranges = [(image, 1, 1), (0, x.shape[1], 1)]
    ranges += [(top, bottom - top, 1), (left, right - left, 1)]
    pixels = ops.reshape(ops.slice(x, ranges), (x.shape[1], bottom - top, right - left))
    y = ops.matmul(pixels, columns[:, left:right].astype(x.dtype), transb=True)
    return ops.matmul(rows[:, top:bottom].astype(x.dtype), y)


def joined(ys: list[Variable], x: Any, sizes: tuple[int, int]) -> Variable:
    """(R, C, rows, columns) of the pooled regions, of which there may be none."""
    if ys:
        return _core.ops.stack(ys, 0)
    nothing = [(0, 0, 1), (0, x.shape[1], 1), (0, 0, 1), (0, 0, 1)]
    return _core.ops.reshape(_core.ops.slice(x, nothing), (0, x.shape[1], *sizes))


def _extent(weights: numpy.ndarray) -> tuple[int, int]:
    used = numpy.flatnonzero(weights.any(0))
    return (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 1)


def samples(
    begin: float, end: float, out: int, size: int, ratio: int | None
) -> tuple[numpy.ndarray, int]:
    """Bilinear weights (out * ratio, size) of points spread evenly over cells.

    ``ratio`` points per cell, about one per pixel if None.
    """
    length = max(end - begin, 1.0)
    if ratio is None:
        ratio = int(numpy.ceil(length / out))
    if out * ratio > MOST_POINTS:
        raise ValueError(
            f"roi_*_align_2d: expected regions of at most {MOST_POINTS} points along "
            f"an axis, got {out * ratio}: give a sampling_ratio"
        )
    points = begin + (numpy.arange(out * ratio) + 0.5) * length / (out * ratio)
    inside = (points >= -1) & (points <= size)
    points = numpy.clip(points, 0, size - 1)
    lower = numpy.minimum(points.astype(int), max(size - 2, 0))
    upper = numpy.minimum(lower + 1, size - 1)
    fraction = points - lower
    weights = numpy.zeros((len(points), size))
    numpy.add.at(weights, (numpy.arange(len(points)), lower), 1 - fraction)
    numpy.add.at(weights, (numpy.arange(len(points)), upper), fraction)
    return weights * inside[:, None], ratio


def as_ratios(name: str, sampling_ratio: Any) -> tuple[int | None, int | None]:
    """(along rows, along columns); TypeError unless integers above 0 or None."""
    if not isinstance(sampling_ratio, (tuple, list)):
        sampling_ratio = (sampling_ratio, sampling_ratio)
    given = tuple(1 if ratio is None else ratio for ratio in sampling_ratio)
    as_positive_pair(name, "sampling_ratio", given)
    down, across = sampling_ratio
    return down, across
