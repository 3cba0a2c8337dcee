"""Maxima over a pyramid of grids."""

from __future__ import annotations

from renga import _core
from renga.core.around_call import overridable
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape
from renga.functions.pooling.max_pooling import max_pooling_2d
from renga.utils.extents import check_count, check_memory


@overridable
def spatial_pyramid_pooling_2d(
    x: ArrayLike, pyramid_height: int, pooling: str | None = None
) -> Variable:
    """The largest elements of 1, 4, 16, … equal cells of an image, as channels.

    Images that cannot be divided equally are padded with minus infinity.

    Shapes:
        x: (N, C, H, W)
        return: (N, C (4^pyramid_height - 1) / 3, 1, 1)

    Raises:
        ValueError: ``pooling`` is not "max", or there is no level.
        InvalidType: ``x`` is not an image of floats with pixels.
        MemoryError: the result would not fit in memory.

    Source: He et al., Spatial pyramid pooling in deep convolutional networks, 2014.
    """
    if pooling != "max":
        raise ValueError(
            f"spatial_pyramid_pooling_2d: expected pooling 'max', got {pooling!r}"
        )
    check_floats("spatial_pyramid_pooling_2d", x)
    check_shape("spatial_pyramid_pooling_2d", x.ndim == 4, "(N, C, H, W)", x)
    check_shape("spatial_pyramid_pooling_2d", 0 not in x.shape[2:], "pixels", x)
    height = check_count("spatial_pyramid_pooling_2d", "pyramid_height", pyramid_height)
    cells = (4 ** min(height, 31) - 1) // 3  # more would overflow all the same
    check_memory(
        "spatial_pyramid_pooling_2d", (x.shape[0], x.shape[1] * cells, 1, 1), x.dtype
    )
    levels = []
    for level in range(height):
        cells = 2**level
        size = [-(-extent // cells) for extent in x.shape[2:]]
        pad = [(k * cells - n) // 2 for k, n in zip(size, x.shape[2:])]
        y = max_pooling_2d(x, size, size, pad, cover_all=True)
        channels = x.shape[1] * y.shape[2] * y.shape[3]
        levels.append(_core.ops.reshape(y, (x.shape[0], channels, 1, 1)))
    return _core.ops.concat(levels, 1)
