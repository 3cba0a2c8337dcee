"""Two-dimensional convolution whose filters differ from pixel to pixel."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.array.cast import cast_floats
from renga.functions.array.im2col import im2col
from renga.functions.check import check_floats, check_shape
from renga.functions.window import as_pair


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
