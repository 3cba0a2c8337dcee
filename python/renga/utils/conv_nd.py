"""Windows over arrays of any number of axes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy

from renga.backends import cuda
from renga.core.types import Extents
from renga.utils.conv import get_conv_outsize
from renga.utils.extents import is_number


def as_tuple(
    x: Extents, n: int, name: str = "conv_nd", what: str = "values"
) -> tuple[int, ...]:
    """The option ``what`` of the operation ``name`` for each of ``n`` axes.

    Raises:
        AssertionError: it has another number of values.
    """
    if is_number(x):
        return (x,) * n  # type: ignore[return-value]
    values = tuple(x)  # type: ignore[arg-type]
    assert len(values) == n, f"{name}: expected {n} numbers as {what}, got {x}"
    return values


def im2col_nd_cpu(
    img: numpy.ndarray,
    ksize: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    pval: float = 0,
    cover_all: bool = False,
    dilate: int | Sequence[int] = 1,
) -> numpy.ndarray:
    """The elements of each window.

    Shapes:
        img: (N, C, d1, …, dn)
        return: (N, C, k1, …, kn, out1, …, outn)
    """
    n = img.ndim - 2
    assert n == len(ksize) == len(stride) == len(pad), "expected one number per axis"
    dims = img.shape[2:]
    dilate = as_tuple(dilate, len(dims))
    outs = tuple(
        get_conv_outsize(d, k, s, p, cover_all, di)
        for d, k, s, p, di in zip(dims, ksize, stride, pad, dilate)
    )
    widths = ((0, 0), (0, 0), *((p, p + s - 1) for p, s in zip(pad, stride)))
    padded = numpy.pad(img, widths, mode="constant", constant_values=pval)
    col = numpy.empty((*img.shape[:2], *ksize, *outs), img.dtype)
    for offset in itertools.product(*map(range, ksize)):
        elements = padded[_window(offset, stride, dilate, outs)]
        col[_at(offset)] = elements
    return col


def im2col_nd(
    img: numpy.ndarray,
    ksize: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    cover_all: bool = False,
    dilate: int | Sequence[int] = 1,
) -> numpy.ndarray:
    """The elements of each window, with zeros around the array."""
    return im2col_nd_cpu(img, ksize, stride, pad, 0, cover_all, dilate)


def col2im_nd(
    col: numpy.ndarray,
    stride: Sequence[int],
    pad: Sequence[int],
    dims: Sequence[int],
    dilate: int | Sequence[int] = 1,
) -> numpy.ndarray:
    """The transpose of ``im2col_nd``: adds the elements of every window to the array.

    Shapes:
        col: (N, C, k1, …, kn, out1, …, outn)
        return: (N, C, d1, …, dn)
    """
    n = len(dims)
    assert n == len(stride) == len(pad), "expected one number per axis"
    assert col.ndim == 2 * n + 2, "expected a window and outputs for each axis"
    dilate = as_tuple(dilate, n)
    ksize, outs = col.shape[2 : 2 + n], col.shape[2 + n :]
    padded_dims = (
        max(d + 2 * p + s - 1, (k - 1) * di + s * out)
        for d, k, s, p, di, out in zip(dims, ksize, stride, pad, dilate, outs)
    )
    padded = numpy.zeros((*col.shape[:2], *padded_dims), col.dtype)
    for offset in itertools.product(*map(range, ksize)):
        padded[_window(offset, stride, dilate, outs)] += col[_at(offset)]
    inside: Any = (..., *(slice(p, p + d) for p, d in zip(pad, dims)))
    return padded[inside]


col2im_nd_cpu = col2im_nd
#: Of CuPy's arrays; RuntimeError without CuPy.
im2col_nd_gpu = col2im_nd_gpu = cuda.unavailable


def _at(offset: Sequence[int]) -> Any:
    """The index of one element of the window, in columns."""
    return (slice(None), slice(None), *offset)


def _window(
    offset: Sequence[int],
    stride: Sequence[int],
    dilate: Sequence[int],
    outs: Sequence[int],
) -> Any:
    """The index of the element ``offset`` of all windows."""
    return (
        ...,
        *(
            slice(o * di, o * di + s * out, s)
            for o, s, di, out in zip(offset, stride, dilate, outs)
        ),
    )
