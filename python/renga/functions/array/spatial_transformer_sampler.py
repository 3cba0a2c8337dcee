"""An image sampled at the points of a grid."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.bilinear_sampling import sample_pixels
from renga.functions.array.cast import cast
from renga.functions.check import check_floats, check_shape
from renga.utils.argument import parse_kwargs


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
