"""Convolution over any number of axes."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.functions.check import check_axes
from renga.utils.conv_nd import as_tuple
from renga.variable import Variable


def convolution_nd(
    x: Any,
    W: Any,
    b: Any = None,
    stride: Any = 1,
    pad: Any = 0,
    cover_all: bool = False,
    dilate: Any = 1,
    groups: int = 1,
) -> Variable:
    """Convolution (cross-correlation) of n-dimensional images with filters.

    ``stride``, ``pad`` and ``dilate`` are numbers or one number per axis. With
    ``groups`` above 1, channels are convolved in so many groups on their own.
    ``cover_all`` adds padding at the end until every element is seen.

    Shapes:
        x: (N, I, d1, …, dn)
        W: (O, I / groups, k1, …, kn)
        b: (O,)
        return: (N, O, d1', …, dn')

    Raises:
        AssertionError: an option has another number of axes.
        InvalidType: shapes or dtypes do not fit.
    """
    n = x.ndim - 2
    window = (*(as_tuple(option, n) for option in (stride, pad, dilate)), groups)
    return _core.ops.convolution_nd(x, W, b, window, cover_all)


def convolution_1d(
    x: Any,
    W: Any,
    b: Any = None,
    stride: Any = 1,
    pad: Any = 0,
    cover_all: bool = False,
    dilate: Any = 1,
    groups: int = 1,
) -> Variable:
    """``convolution_nd`` of (N, I, d); ValueError for other numbers of axes."""
    check_axes("convolution_1d", x, 1)
    return convolution_nd(x, W, b, stride, pad, cover_all, dilate, groups)


def convolution_3d(
    x: Any,
    W: Any,
    b: Any = None,
    stride: Any = 1,
    pad: Any = 0,
    cover_all: bool = False,
    dilate: Any = 1,
    groups: int = 1,
) -> Variable:
    """``convolution_nd`` of (N, I, d1, d2, d3); ValueError for other numbers."""
    check_axes("convolution_3d", x, 3)
    return convolution_nd(x, W, b, stride, pad, cover_all, dilate, groups)
