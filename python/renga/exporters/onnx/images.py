"""ONNX nodes of operations on images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from renga.exporters.onnx.registry import writes


def _ends(
    size: Sequence[int],
    out: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    dilate: Sequence[int],
) -> list[int]:
    """The padding at the ends with which outputs have exactly this size."""
    needed = [
        (o - 1) * s + (k - 1) * d + 1 - n - p
        for n, o, k, s, p, d in zip(size, out, kernel, stride, pad, dilate)
    ]
    return [max(n, 0) for n in needed]


@writes("convolution_2d", "convolution_nd")
def _convolution(
    graph: Any, ys: Any, x: Any, W: Any, b: Any, window: Any, cover_all: bool
) -> str:
    stride, pad, dilate, groups = window
    kernel = W.shape[2:]
    ends = _ends(x.shape[2:], ys[0].shape[2:], kernel, stride, pad, dilate)
    y = graph.node(
        "Conv",
        x,
        W,
        *([] if b is None else [b]),
        kernel_shape=kernel,
        strides=stride,
        pads=[*pad, *ends],
        dilations=dilate,
        group=groups,
    )
    return y


@writes("deconvolution_2d", "deconvolution_nd")
def _deconvolution(
    graph: Any, ys: Any, x: Any, W: Any, b: Any, window: Any, outsize: Any
) -> str:
    return _transposed_convolution(graph, ys[0], x, W, b, *window)


@writes("unpooling_2d")
def _unpooling(graph: Any, ys: Any, x: Any, window: Any, extents: Any) -> str:
    """A transposed convolution of each channel with ones."""
    kernel, stride, pad = window
    channels = x.shape[1]
    ones = numpy.ones((channels, 1, *kernel), x.dtype)
    y = _transposed_convolution(
        graph, ys[0], x, ones, None, stride, pad, (1, 1), channels
    )
    return y


def _transposed_convolution(
    graph: Any,
    y: Any,
    x: Any,
    W: Any,
    b: Any,
    stride: Sequence[int],
    pad: Sequence[int],
    dilate: Sequence[int],
    groups: int,
) -> str:
    kernel = W.shape[2:]
    full_extents = [
        s * (n - 1) + d * (k - 1) + 1
        for n, k, s, d in zip(x.shape[2:], kernel, stride, dilate)
    ]
    ends = [w - p - o for w, p, o in zip(full_extents, pad, y.shape[2:])]
    name: str = graph.node(
        "ConvTranspose",
        x,
        W,
        *([] if b is None else [b]),
        kernel_shape=kernel,
        strides=stride,
        pads=[*pad, *(max(e, 0) for e in ends)],
        output_padding=[max(-e, 0) for e in ends],
        dilations=dilate,
        group=groups,
    )
    return name


@writes("resample_2d")
def _resample(graph: Any, ys: Any, x: Any, rows: Any, columns: Any) -> str:
    """The weights of rows times images times those of columns."""
    down, across = (
        numpy.maximum(1 - abs(at[:, None] - numpy.arange(n)), 0).astype(x.dtype)
        for at, n in zip((rows, columns), x.shape[2:])
    )
    return graph.node("MatMul", graph.node("MatMul", down, x), across.T)


@writes("sample_2d")
def _sample(graph: Any, ys: Any, x: Any, rows: Any, columns: Any) -> str:
    """GridSample, whose grid has the image, with whole pixels, from -1 to 1."""

    def coordinate(points: Any, size: int) -> str:
        shift, scale = ((numpy.asarray(v, x.dtype)) for v in (1 / size - 1, 2 / size))
        flat = graph.node("Reshape", points, numpy.array([0, 1, -1, 1], numpy.int64))
        name: str = graph.node("Add", graph.node("Mul", flat, scale), shift)
        return name

    h, w = x.shape[2:]
    grid = graph.node("Concat", coordinate(columns, w), coordinate(rows, h), axis=-1)
    y = graph.node("GridSample", x, grid, padding_mode="zeros", align_corners=0)
    shape = numpy.array([0, 0, *ys[0].shape[2:]], numpy.int64)
    return graph.node("Reshape", y, shape)


@writes("max_pooling_2d")
def _max_pooling(graph: Any, ys: Any, x: Any, window: Any, cover: bool) -> str:
    return _pool(graph, "MaxPool", ys, x, window, -math.inf)


@writes("max_pooling_2d_with_indices")
def _max_pooling_with_indices(
    graph: Any, ys: Any, x: Any, window: Any, cover: bool
) -> Sequence[str] | None:
    """ONNX counts the pixels of the whole array, and indices those of a window."""
    import onnx

    kernel, stride, pad = window
    if any(p >= k for p, k in zip(pad, kernel)):
        return None  # runtimes refuse windows in the padding alone
    (rows, columns), outs = x.shape[2:], ys[0].shape[2:]
    ends = _ends((rows, columns), outs, kernel, stride, pad, (1, 1))
    pads = [*pad, *ends]
    y, pixel = graph.node(
        "MaxPool", x, outputs=2, kernel_shape=kernel, strides=stride, pads=pads
    )
    pixel = graph.node("Mod", pixel, numpy.int64(rows * columns))
    first_row, first_column = window_starts(outs, stride, pad)
    row = graph.node("Sub", graph.node("Div", pixel, numpy.int64(columns)), first_row)
    column = graph.node("Mod", pixel, numpy.int64(columns))
    column = graph.node("Sub", column, first_column)
    index = graph.node("Add", graph.node("Mul", row, numpy.int64(kernel[1])), column)
    to = onnx.helper.np_dtype_to_tensor_dtype(ys[1].dtype)
    return [y, graph.node("Cast", index, to=to)]


def window_starts(
    outs: Sequence[int], stride: Sequence[int], pad: Sequence[int]
) -> list[numpy.ndarray]:
    """The first row and the first column of each window of an image."""
    steps = numpy.indices(outs, numpy.int64, sparse=True)
    return [i * s - p for i, s, p in zip(steps, stride, pad)]


@writes("average_pooling_2d")
def _average_pooling(graph: Any, ys: Any, x: Any, window: Any) -> str:
    return _pool(graph, "AveragePool", ys, x, window, 0, count_include_pad=1)


def _pool(
    graph: Any, op: str, ys: Any, x: Any, window: Any, value: float, **attributes: Any
) -> str:
    """A pooling whose padding has the ``value``.

    Runtimes refuse poolings with windows in the padding alone: these are added after.
    """
    sizes, outs = x.shape[2:], ys[0].shape[2:]
    rows = list(zip(sizes, outs, *window))
    before = [max((p - k) // s + 1, 0) for _, _, k, s, p in rows]
    inner = [min(-(-(n + p) // s), o) - b for b, (n, o, _, s, p) in zip(before, rows)]
    if min(inner) < 1:
        raise NotImplementedError(f"export: {op} of {x.shape} has only padding")
    kernel, stride, _ = window
    pads = [p - b * s for b, (_, _, _, s, p) in zip(before, rows)]
    # Large strides skip the first elements: negative padding removes them.
    skipped = [min(p, 0) for p in pads]
    ends = _ends(sizes, inner, kernel, stride, pads, (1, 1))
    y = graph.node(
        op,
        _padded(graph, x, skipped, [0, 0], x.dtype, value),
        kernel_shape=kernel,
        strides=stride,
        pads=[*(max(p, 0) for p in pads), *ends],
        **attributes,
    )
    after = [o - b - i for o, b, i in zip(outs, before, inner)]
    return _padded(graph, y, before, after, x.dtype, value)


def _padded(
    graph: Any, x: Any, before: list[int], after: list[int], dtype: Any, value: float
) -> Any:
    """``x`` with elements added to its rows and columns; itself without any."""
    if not any(before) and not any(after):
        return x
    widths = numpy.array([0, 0, *before, 0, 0, *after], numpy.int64)
    return graph.node("Pad", x, widths, numpy.asarray(value, dtype))
