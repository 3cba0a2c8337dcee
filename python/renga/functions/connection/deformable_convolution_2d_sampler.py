"""Convolution that samples the image at given offsets."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.array.cast import cast, cast_floats
from renga.functions.array.sampling import sample_pixels
from renga.functions.check import check_floats, check_shape
from renga.functions.on_host import on_host
from renga.utils.conv import get_conv_outsize
from renga.utils.extents import check_window


@on_host
def deformable_convolution_2d_sampler(
    x: ArrayLike,
    offset: ArrayLike,
    W: ArrayLike,
    b: ArrayLike | None = None,
    stride: Extents = 1,
    pad: Extents = 0,
) -> Variable:
    """Convolution whose kernel elements sample the image ``offset`` pixels away.

    ``offset`` holds the columns of all kernel elements, then their rows, for every
    output position.
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
    W = cast_floats(name, x, W)[0]
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
    step, border = check_window(name, 2, stride=stride, pad=pad)
    kh, kw = W.shape[2:]
    check_shape(name, kh > 0 and kw > 0, "filters of at least 1 x 1", W)
    if b is not None:
        check_shape(name, b.shape == W.shape[:1], f"b of {W.shape[:1]}", b)
    outs = tuple(
        get_conv_outsize(*axis) for axis in zip(x.shape[2:], (kh, kw), step, border)
    )
    kernel_size = kh * kw
    expected = (x.shape[0], 2 * kernel_size, *outs)
    check_shape(name, offset.shape == expected, f"an offset of {expected}", offset)
    columns, rows = ops.split_axis(offset, [kernel_size], 1)
    rows = ops.add(rows, _positions(kh, outs[0], step[0], border[0], rows, 0))
    columns = ops.add(columns, _positions(kw, outs[1], step[1], border[1], rows, 1))
    samples = sample_pixels(x, rows, columns)
    n, filters = x.shape[0], W.shape[0]
    samples = ops.reshape(samples, (n, x.shape[1] * kernel_size, outs[0] * outs[1]))
    flat = ops.reshape(W, (filters, x.shape[1] * kernel_size))
    y = ops.reshape(ops.matmul(flat, samples), (n, filters, *outs))
    return y if b is None else ops.add(y, ops.reshape(b, (filters, 1, 1)))


def _positions(
    k: int, out: int, step: int, border: int, like: Any, axis: int
) -> numpy.ndarray:
    """The rows (axis 0) or columns of every kernel element, without offsets."""
    n, kernel_size, h, w = like.shape
    other = kernel_size // k
    shape: tuple[int, ...] = (k, other, h, w) if axis == 0 else (other, k, h, w)
    element = numpy.arange(k).reshape((k, 1, 1, 1) if axis == 0 else (1, k, 1, 1))
    position = numpy.arange(out).reshape((out, 1) if axis == 0 else (1, out))
    positions = numpy.broadcast_to(element + position * step - border, shape)
    positions = positions.reshape(kernel_size, h, w).astype(like.dtype)
    return numpy.broadcast_to(positions, like.shape)
