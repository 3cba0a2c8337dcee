"""Images of another size."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.around_call import overridable
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape
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
    if mode not in ("bilinear", "nearest"):
        raise ValueError(
            f"resize_images: expected mode 'bilinear' or 'nearest', got {mode!r}"
        )
    if m == 0:
        return numpy.zeros(0)
    if mode == "nearest":
        return (numpy.arange(m) * n // m).astype(float)
    if align_corners:
        return numpy.linspace(0, n - 1, m)
    return ((numpy.arange(m) + 0.5) * (n / m) - 0.5).clip(0, n - 1)
