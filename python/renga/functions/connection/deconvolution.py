"""Transposed convolutions of images with any number of axes."""

from __future__ import annotations

from renga import _core
from renga.core.around_call import overridable
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.array.cast import cast_floats
from renga.functions.connection.convolution import DETERMINISTIC
from renga.functions.window import as_pair, over_axes, window_2d, window_nd
from renga.utils.argument import parse_kwargs
from renga.utils.conv_nd import as_tuple


@overridable
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
    dilate, groups = 1, 1
    if kwargs:
        known = ("dilate", dilate), ("groups", groups)
        dilate, groups = parse_kwargs(
            kwargs, *known, deterministic=f"deconvolution_2d: {DETERMINISTIC}"
        )
    window = window_2d("deconvolution_2d", stride, pad, dilate, groups)
    if outsize is not None:
        outsize = as_pair(outsize, "deconvolution_2d", "outsize")
    return _core.ops.deconvolution_2d(x, W, b, window, outsize)


@overridable
def deconvolution_nd(
    x: ArrayLike,
    W: ArrayLike,
    b: ArrayLike | None = None,
    stride: Extents = 1,
    pad: Extents = 0,
    outsize: tuple[int, ...] | None = None,
    dilate: Extents = 1,
    groups: int = 1,
) -> Variable:
    """Transposed convolution: the gradient of a convolution with respect to its input.

    ``stride``, ``pad`` and ``dilate`` are numbers or one number per axis; ``outsize``
    is (d1', …, dn'), the smallest possible if None.

    The result has the dtype of ``x``, whatever those of ``W`` and ``b``.

    Shapes:
        x: (N, I, d1, …, dn)
        W: (I, O / groups, k1, …, kn)
        b: (O,)
        return: (N, O, d1', …, dn')

    Raises:
        AssertionError: an option has another number of axes.
        InvalidType: shapes or dtypes do not fit.
    """
    W, b = cast_floats("deconvolution_nd", x, W, b)
    n = x.ndim - 2
    window = window_nd("deconvolution_nd", n, stride, pad, dilate, groups)
    if outsize is not None:
        outsize = as_tuple(outsize, n, "deconvolution_nd", "outsize")
    return _core.ops.deconvolution_nd(x, W, b, window, outsize)


deconvolution_1d = over_axes(1, "deconvolution_1d", deconvolution_nd)
deconvolution_3d = over_axes(3, "deconvolution_3d", deconvolution_nd)
