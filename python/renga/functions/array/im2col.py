"""Windows of images as channels."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.array.get_item import get_item
from renga.functions.check import check_arrays, check_shape
from renga.utils.conv import get_conv_outsize
from renga.utils.extents import check_memory, check_window


def im2col(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents = 1,
    pad: Extents = 0,
    cover_all: bool = False,
    dilate: Extents = 1,
) -> Variable:
    """The elements of every window, one window behind each output pixel.

    Sizes are numbers or pairs (rows, columns).

    Shapes:
        x: (N, C, H, W)
        return: (N, C kh kw, H', W')

    Raises:
        ValueError: a size is out of range.
        InvalidType: ``x`` is not an image, or smaller than the window.
        MemoryError: the result would not fit in memory.
    """
    check_arrays("im2col", x)
    check_shape("im2col", x.ndim == 4, "(N, C, H, W)", x)
    size, step, border, gap = check_window(
        "im2col",
        2,
        ksize=ksize,
        stride=stride,
        pad=pad,
        dilate=dilate,
    )
    n, c, *extents = x.shape
    outs, after = [], []
    for extent, k, s, p, d in zip(extents, size, step, border, gap):
        out = get_conv_outsize(extent, k, s, p, cover_all, d)
        outs.append(out)
        after.append(max((out - 1) * s + (k - 1) * d + 1 - extent - p, 0))
    check_shape("im2col", min(outs) > 0, f"an image for windows of {size}", x)
    # Checked even without samples: each element of the window is a view.
    check_memory("im2col", (max(n, 1), c * size[0] * size[1], *outs), x.dtype)
    x = _core.ops.pad(x, [0, 0, *border], [0, 0, *after], 0.0)
    columns = []
    for i in range(size[0]):
        for j in range(size[1]):
            starts = i * gap[0], j * gap[1]
            cut = (
                slice(start, start + (out - 1) * s + 1, s)
                for start, out, s in zip(starts, outs, step)
            )
            columns.append(get_item(x, (slice(None), slice(None), *cut)))
    y = _core.ops.stack(columns, 2)
    return _core.ops.reshape(y, (n, c * size[0] * size[1], *outs))
