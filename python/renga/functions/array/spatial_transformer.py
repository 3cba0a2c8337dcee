"""Images sampled at the points of a grid, and grids of affine maps."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.bilinear_sampling import sample_pixels
from renga.functions.array.cast import cast
from renga.functions.check import check_floats, check_shape
from renga.functions.on_host import beside
from renga.utils.argument import parse_kwargs
from renga.utils.extents import check_counts, check_memory


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
