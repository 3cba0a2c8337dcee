"""Two-dimensional convolution."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.window import window_2d
from renga.utils.argument import parse_kwargs

DETERMINISTIC = "expected using_config('cudnn_deterministic', …), got deterministic"


def convolution_2d(
    x: ArrayLike,
    W: ArrayLike,
    b: ArrayLike | None = None,
    stride: Extents = 1,
    pad: Extents = 0,
    cover_all: bool = False,
    **kwargs: object,
) -> Variable:
    """Convolution (cross-correlation) of images with filters.

    ``stride``, ``pad`` and ``dilate=1`` are numbers or pairs (rows, columns). With
    ``groups=1`` above 1, channels are convolved in that many separate groups.
    ``cover_all`` adds padding at the end until the windows cover every pixel.

    Shapes:
        x: (N, I, H, W)
        W: (O, I / groups, kh, kw)
        b: (O,)
        return: (N, O, H', W')

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    dilate, groups = parse_kwargs(
        kwargs,
        ("dilate", 1),
        ("groups", 1),
        deterministic=f"convolution_2d: {DETERMINISTIC}",
    )
    window = window_2d("convolution_2d", stride, pad, dilate, groups)
    return _core.ops.convolution_2d(x, W, b, window, cover_all)
