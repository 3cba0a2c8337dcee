"""Images sampled between their pixels: at the points of a grid, and in another size."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.around_call import overridable, reads_elements
from renga.core.backend import get_array_module
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array, as_variable
from renga.functions.array.cast import cast
from renga.functions.check import check_floats, check_shape
from renga.functions.on_host import beside
from renga.utils.argument import check_choice, parse_kwargs
from renga.utils.extents import check_counts, check_memory


@overridable
def resize_images(
    x: ArrayLike,
    output_shape: tuple[int, int],
    *,
    mode: str = "bilinear",
    align_corners: bool = True,
) -> Variable:
    """Images resampled to (rows, columns), by interpolation or the nearest pixel.

    Interpolation leaves the centres of the corner pixels where they are with
    ``align_corners``, else their corners.

    Shapes:
        x: (N, C, H, W)
        return: (N, C, rows, columns)

    Raises:
        InvalidType: ``x`` is not an image of floats.
        ValueError: the mode is neither "bilinear" nor "nearest", or a size below 0.
        MemoryError: the result would not fit in memory.
    """
    check_floats("resize_images", x)
    check_shape("resize_images", x.ndim == 4, "(N, C, H, W)", x)
    outs = check_counts("resize_images", "output_shape", output_shape, 2, 0)
    empty = 0 in x.shape[2:] and 0 not in outs
    check_shape("resize_images", not empty, "an image with pixels", x)
    check_memory("resize_images", (*x.shape[:2], *outs), x.dtype)
    rows, columns = (
        positions(n, m, mode, align_corners) for n, m in zip(x.shape[2:], outs)
    )
    return _core.ops.resample_2d(x, rows, columns)


def positions(n: int, m: int, mode: str, align_corners: bool) -> numpy.ndarray:
    """Where the ``m`` new pixels are among the ``n`` old ones.

    Raises:
        ValueError: the mode is neither "bilinear" nor "nearest".
    """
    check_choice("resize_images: expected mode", mode, "bilinear", "nearest")
    if m == 0:
        return numpy.zeros(0)
    if mode == "nearest":
        return (numpy.arange(m) * n // m).astype(float)
    if align_corners:
        return numpy.linspace(0, n - 1, m)
    return ((numpy.arange(m) + 0.5) * (n / m) - 0.5).clip(0, n - 1)


def spatial_transformer_grid(
    theta: ArrayLike, output_shape: tuple[int, int], **kwargs: object
) -> Variable:
    """Points of an input image for the pixels of an output image (rows, columns).

    ``theta`` maps (x, y, 1) of the output to (x, y) of the input; both images reach
    from -1 to 1.

    Shapes:
        theta: (N, 2, 3)
        return: (N, 2, rows, columns), x before y

    Raises:
        ValueError: a size is below 0.
        InvalidType: ``theta`` has another shape or is not of floats.
        MemoryError: the result would not fit in memory.

    Source: Jaderberg et al., Spatial transformer networks, 2015.
    """
    name = "spatial_transformer_grid"
    parse_kwargs(kwargs, use_cudnn=f"{name}: expected using_config('use_cudnn', …)")
    check_floats(name, theta)
    fits = theta.ndim == 3 and theta.shape[1:] == (2, 3)
    check_shape(name, fits, "(N, 2, 3)", theta)
    rows, columns = check_counts(name, "output_shape", output_shape, 2, 0)
    check_memory(name, (len(theta), 2, rows, columns), theta.dtype)
    check_memory(name, (3, rows, columns), float)
    y, x = numpy.meshgrid(
        numpy.linspace(-1, 1, rows), numpy.linspace(-1, 1, columns), indexing="ij"
    )
    points = numpy.stack([x, y, numpy.ones_like(x)]).reshape(3, -1).astype(theta.dtype)
    points = numpy.broadcast_to(points, (len(theta), *points.shape))
    grid = _core.ops.matmul(theta, beside(theta, points))
    return _core.ops.reshape(grid, (len(theta), 2, rows, columns))


def spatial_transformer_sampler(
    x: ArrayLike, grid: ArrayLike, **kwargs: object
) -> Variable:
    """``x`` at the points of ``grid``, by bilinear interpolation; 0 outside.

    Points are (x, y) with the image reaching from -1 to 1.

    Shapes:
        x: (N, C, H, W)
        grid: (N, 2, H', W')
        return: (N, C, H', W')

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: Jaderberg et al., Spatial transformer networks, 2015.
    """
    name = "spatial_transformer_sampler"
    parse_kwargs(kwargs, use_cudnn=f"{name}: expected using_config('use_cudnn', …)")
    check_floats(name, x, grid)
    fits = x.ndim == grid.ndim == 4 and grid.shape[:2] == (x.shape[0], 2)
    check_shape(name, fits, "(N, C, H, W) and (N, 2, H', W')", x, grid)
    if x.dtype.char == "e":  # too coarse for fractions of a pixel
        x, grid = cast(x, "float32"), cast(grid, "float32")
        return cast(spatial_transformer_sampler(x, grid), "float16")
    ops = _core.ops
    columns, rows = (
        ops.squeeze(coordinates, 1) for coordinates in ops.split_axis(grid, [1], 1)
    )
    h, w = x.shape[2:]
    return sample_pixels(x, (rows + 1) * ((h - 1) / 2), (columns + 1) * ((w - 1) / 2))


def sample_pixels(x: ArrayLike, rows: ArrayLike, columns: ArrayLike) -> Variable:
    """``x`` at points given in pixels, by bilinear interpolation; 0 outside.

    Shapes:
        x: (N, C, H, W)
        rows, columns: (N, …)
        return: (N, C, …)
    """
    if not as_variable(x).device_name.startswith("cuda:"):
        return _core.ops.sample_2d(x, rows, columns)
    return _composed(x, rows, columns)


@reads_elements
def _composed(x: Any, rows: Any, columns: Any) -> Variable:
    """The same of operations that CUDA devices have kernels for."""
    ops = _core.ops
    n, c, h, w = x.shape
    table = ops.reshape(ops.transpose(x, (0, 2, 3, 1)), (n * h * w, c))
    # Points more than a pixel outside are 0, also at infinity.
    rows, columns = ops.clip(rows, -2.0, h + 1.0), ops.clip(columns, -2.0, w + 1.0)
    top, left = numpy.floor(as_array(rows)), numpy.floor(as_array(columns))
    xp = get_array_module(top)
    images = xp.arange(n).reshape(n, *(1,) * (rows.ndim - 1))
    row_fraction, column_fraction = ops.subtract(rows, top), ops.subtract(columns, left)
    terms = []
    for down, weight_down in ((0, 1 - row_fraction), (1, row_fraction)):
        for across, weight_across in ((0, 1 - column_fraction), (1, column_fraction)):
            i, j = top + down, left + across
            inside = (0 <= i) & (i < h) & (0 <= j) & (j < w)  # never for NaN
            i, j = (xp.where(inside, k, 0).astype(int) for k in (i, j))
            at = xp.where(inside, (images * h + i) * w + j, -1)
            corner = ops.embed_id(at, table, -1)
            weight = ops.expand_dims(weight_down * weight_across, rows.ndim)
            terms.append(ops.multiply(corner, ops.broadcast_to(weight, corner.shape)))
    y = ops.add(ops.add(terms[0], terms[1]), ops.add(terms[2], terms[3]))
    return ops.transpose(y, (0, rows.ndim, *range(1, rows.ndim)))
