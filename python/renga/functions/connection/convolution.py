"""Convolutions of images with any number of axes, and with filters of each pixel."""

from __future__ import annotations

from renga import _core
from renga.core.around_call import overridable
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.array.cast import cast_floats
from renga.functions.array.windows import im2col
from renga.functions.check import check_arrays, check_floats, check_shape
from renga.functions.window import as_pair, over_axes, window_2d, window_nd
from renga.utils.argument import parse_kwargs

DETERMINISTIC = "expected using_config('cudnn_deterministic', …), got deterministic"


@overridable
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
    dilate, groups = 1, 1
    if kwargs:
        known = ("dilate", dilate), ("groups", groups)
        dilate, groups = parse_kwargs(
            kwargs, *known, deterministic=f"convolution_2d: {DETERMINISTIC}"
        )
    window = window_2d("convolution_2d", stride, pad, dilate, groups)
    return _core.ops.convolution_2d(x, W, b, window, cover_all)


@overridable
def convolution_nd(
    x: ArrayLike,
    W: ArrayLike,
    b: ArrayLike | None = None,
    stride: Extents = 1,
    pad: Extents = 0,
    cover_all: bool = False,
    dilate: Extents = 1,
    groups: int = 1,
) -> Variable:
    """Convolution (cross-correlation) of n-dimensional images with filters.

    ``stride``, ``pad`` and ``dilate`` are numbers or one number per axis. With
    ``groups`` above 1, channels are convolved in that many separate groups.
    ``cover_all`` adds padding at the end until the windows cover every element.

    The result has the dtype of ``x``, whatever those of ``W`` and ``b``.

    Shapes:
        x: (N, I, d1, …, dn)
        W: (O, I / groups, k1, …, kn)
        b: (O,)
        return: (N, O, d1', …, dn')

    Raises:
        AssertionError: an option has another number of axes.
        InvalidType: shapes or dtypes do not fit.
    """
    W, b = cast_floats("convolution_nd", x, W, b)
    window = window_nd("convolution_nd", x.ndim - 2, stride, pad, dilate, groups)
    return _core.ops.convolution_nd(x, W, b, window, cover_all)


convolution_1d = over_axes(1, "convolution_1d", convolution_nd)
convolution_3d = over_axes(3, "convolution_3d", convolution_nd)


def dilated_convolution_2d(
    x: ArrayLike,
    W: ArrayLike,
    b: ArrayLike | None = None,
    stride: Extents = 1,
    pad: Extents = 0,
    dilate: Extents = 1,
    cover_all: bool = False,
) -> Variable:
    """``convolution_2d`` with the arguments in another order.

    Shapes:
        x: (N, I, H, W)
        W: (O, I, kh, kw)
        b: (O,)
        return: (N, O, H', W')

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    return convolution_2d(x, W, b, stride, pad, cover_all, dilate=dilate)


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


def local_convolution_2d(
    x: ArrayLike, W: ArrayLike, b: ArrayLike | None = None, stride: Extents = 1
) -> Variable:
    """The product of every window with filters of its own.

    ``stride`` is a number or a pair (rows, columns).

    Shapes:
        x: (N, I, H, W)
        W: (O, H', W', I, kh, kw)
        b: (O, H', W')
        return: (N, O, H', W')

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    name = "local_convolution_2d"
    W = cast_floats(name, x, W)[0]
    called = "x and W" if b is None else "x, W and b"
    check_floats(name, x, W, *(() if b is None else (b,)), called=called)
    fits = x.ndim == 4 and W.ndim == 6 and x.shape[1] == W.shape[3]
    check_shape(name, fits, "(N, I, H, W) and (O, H', W', I, kh, kw)", x, W)
    columns = im2col(x, W.shape[4:], as_pair(stride, "local_convolution_2d", "stride"))
    n, size, *outs = columns.shape
    filters = W.shape[0]
    check_shape(name, W.shape[1:3] == tuple(outs), f"W for {outs} pixels", x, W)
    ops, pixels = _core.ops, outs[0] * outs[1]
    # One product of matrices per pixel: (pixels, N, size) with (pixels, size, O).
    columns = ops.reshape(ops.transpose(columns, (2, 3, 0, 1)), (pixels, n, size))
    W = ops.reshape(ops.transpose(W, (1, 2, 0, 3, 4, 5)), (pixels, filters, size))
    y = ops.transpose(ops.matmul(columns, W, transb=True), (1, 2, 0))
    y = ops.reshape(y, (n, filters, *outs))
    if b is None:
        return y
    check_shape(name, b.shape == y.shape[1:], "b of (O, H', W')", b)
    return ops.add(y, b)
