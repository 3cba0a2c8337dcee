"""Two-dimensional convolution of each channel on its own."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.check import check_arrays, check_shape
from renga.functions.connection.convolution_2d import convolution_2d


def depthwise_convolution_2d(
    x: ArrayLike,
    W: ArrayLike,
    b: ArrayLike | None = None,
    stride: Extents = 1,
    pad: Extents = 0,
) -> Variable:
    """Convolution of each channel with M filters of its own.

    ``stride`` and ``pad`` are numbers or pairs (rows, columns).

    Shapes:
        x: (N, C, H, W)
        W: (M, C, kh, kw)
        b: (C M,)
        return: (N, C M, H', W'), the M results of a channel one after the other

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: Chollet, Xception: deep learning with depthwise separable convolutions,
    2016.
    """
    check_arrays("depthwise_convolution_2d", x, W)
    fits = x.ndim == W.ndim == 4 and x.shape[1] == W.shape[1]
    check_shape("depthwise_convolution_2d", fits, "(N, C, H, W), (M, C, kh, kw)", x, W)
    multiplier, channels, *size = W.shape
    W = _core.ops.transpose(W, (1, 0, 2, 3))
    W = _core.ops.reshape(W, (channels * multiplier, 1, *size))
    return convolution_2d(x, W, b, stride, pad, groups=channels)
