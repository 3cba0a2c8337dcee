"""Convolution whose taps lie where it is told."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.functions.array.bilinear_sampling import sample_pixels
from renga.functions.array.cast import cast
from renga.functions.check import check_floats, check_shape
from renga.functions.window import as_pair
from renga.utils.conv import get_conv_outsize
from renga.utils.extents import check_window
from renga.variable import Variable


def deformable_convolution_2d_sampler(
    x: Any, offset: Any, W: Any, b: Any = None, stride: Any = 1, pad: Any = 0
) -> Variable:
    """Convolution that sees, for every tap, the image ``offset`` pixels aside.

    ``offset`` holds the columns of all taps, then their rows, for every position.
    ``stride`` and ``pad`` are numbers or pairs (rows, columns). Beyond the padding the
    image is 0.

    Shapes:
        x: (N, I, H, W)
        offset: (N, 2 kh kw, H', W')
        W: (O, I, kh, kw)
        b: (O,)
        return: (N, O, H', W')

    Raises:
        ValueError: ``stride`` or ``pad`` is out of range.
        InvalidType: shapes or dtypes do not fit.

    Source: Dai et al., Deformable convolutional networks, 2017.
    """
    name = "deformable_convolution_2d_sampler"
    called = "x, offset and W" if b is None else "x, offset, W and b"
    check_floats(name, x, offset, W, *(() if b is None else (b,)), called=called)
    fits = x.ndim == offset.ndim == W.ndim == 4 and x.shape[1] == W.shape[1]
    check_shape(
        name, fits, "(N, I, H, W), (N, K, H', W'), (O, I, kh, kw)", x, offset, W
    )
    if x.dtype.char == "e":
        x, offset, W = (cast(v, "float32") for v in (x, offset, W))
        b = None if b is None else cast(b, "float32")
        y = deformable_convolution_2d_sampler(x, offset, W, b, stride, pad)
        return cast(y, "float16")
    ops = _core.ops
    step, border = check_window(name, 2, stride=as_pair(stride), pad=as_pair(pad))
    kh, kw = W.shape[2:]
    check_shape(name, kh > 0 and kw > 0, "filters with taps", W)
    outs = tuple(
        get_conv_outsize(*axis) for axis in zip(x.shape[2:], (kh, kw), step, border)
    )
    taps = kh * kw
    expected = (x.shape[0], 2 * taps, *outs)
    check_shape(name, offset.shape == expected, f"an offset of {expected}", offset)
    columns, rows = ops.split_axis(offset, [taps], 1)
    rows = ops.add(rows, _places(kh, outs[0], step[0], border[0], rows, 0))
    columns = ops.add(columns, _places(kw, outs[1], step[1], border[1], rows, 1))
    seen = sample_pixels(x, rows, columns)
    n, filters = x.shape[0], W.shape[0]
    seen = ops.reshape(seen, (n, x.shape[1] * taps, outs[0] * outs[1]))
    flat = ops.reshape(W, (filters, x.shape[1] * taps))
    y = ops.reshape(ops.matmul(flat, seen), (n, filters, *outs))
    return y if b is None else ops.add(y, ops.reshape(b, (filters, 1, 1)))


def _places(
    k: int, out: int, step: int, border: int, like: Any, axis: int
) -> numpy.ndarray:
    """The rows (axis 0) or columns of every tap at every position, undeformed."""
    n, taps, h, w = like.shape
    other = taps // k
    shape: tuple[int, ...] = (k, other, h, w) if axis == 0 else (other, k, h, w)
    tap = numpy.arange(k).reshape((k, 1, 1, 1) if axis == 0 else (1, k, 1, 1))
    position = numpy.arange(out).reshape((out, 1) if axis == 0 else (1, out))
    place = numpy.broadcast_to(tap + position * step - border, shape)
    place = place.reshape(taps, h, w).astype(like.dtype)
    return numpy.broadcast_to(place, like.shape)
