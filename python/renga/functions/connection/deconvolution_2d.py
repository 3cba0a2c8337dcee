"""Two-dimensional transposed convolution."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.connection.convolution_2d import DETERMINISTIC
from renga.functions.window import as_pair, window_2d
from renga.utils.argument import parse_kwargs


def deconvolution_2d(
    x: ArrayLike,
    W: ArrayLike,
    b: ArrayLike | None = None,
    stride: Extents = 1,
    pad: Extents = 0,
    outsize: tuple[int, int] | None = None,
    **kwargs: object,
) -> Variable:
    """Transposed convolution: the gradient of a convolution with respect to its input.

    ``stride``, ``pad`` and ``dilate=1`` are numbers or pairs (rows, columns);
    ``outsize`` is (H', W'), the smallest possible if None.

    Shapes:
        x: (N, I, H, W)
        W: (I, O / groups, kh, kw)
        b: (O,)
        return: (N, O, H', W')

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    dilate, groups = parse_kwargs(
        kwargs,
        ("dilate", 1),
        ("groups", 1),
        deterministic=f"deconvolution_2d: {DETERMINISTIC}",
    )
    window = window_2d("deconvolution_2d", stride, pad, dilate, groups)
    if outsize is not None:
        outsize = as_pair(outsize, "deconvolution_2d", "outsize")
    return _core.ops.deconvolution_2d(x, W, b, window, outsize)
