"""ONNX nodes of operations on images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
) -> Sequence[str]:
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
    return [y]


@writes("deconvolution_2d", "deconvolution_nd")
def _deconvolution(
    graph: Any, ys: Any, x: Any, W: Any, b: Any, window: Any, outsize: Any
) -> Sequence[str]:
    stride, pad, dilate, groups = window
    kernel = W.shape[2:]
    full_extents = [
        s * (n - 1) + d * (k - 1) + 1
        for n, k, s, d in zip(x.shape[2:], kernel, stride, dilate)
    ]
    ends = [w - p - o for w, p, o in zip(full_extents, pad, ys[0].shape[2:])]
    y = graph.node(
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
    return [y]


@writes("max_pooling_2d")
def _max_pooling(
    graph: Any, ys: Any, x: Any, window: Any, cover: bool
) -> Sequence[str]:
    return [_pool(graph, "MaxPool", ys, x, window)]


@writes("average_pooling_2d")
def _average_pooling(graph: Any, ys: Any, x: Any, window: Any) -> Sequence[str]:
    return [_pool(graph, "AveragePool", ys, x, window, count_include_pad=1)]


def _pool(graph: Any, op: str, ys: Any, x: Any, window: Any, **attributes: Any) -> str:
    kernel, stride, pad = window
    ends = _ends(x.shape[2:], ys[0].shape[2:], kernel, stride, pad, (1, 1))
    return graph.node(
        op, x, kernel_shape=kernel, strides=stride, pads=[*pad, *ends], **attributes
    )
