"""ONNX nodes of operations on shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga.exporters.onnx.registry import writes, writes_function
from renga.link_hooks.lora import ConstantWeight


def _int64(values: Any) -> numpy.ndarray:
    return numpy.array(values, numpy.int64)


@writes("reshape", "flatten", "squeeze", "expand_dims")
def _reshape(graph: Any, ys: Any, x: Any, *_: Any) -> str:
    return graph.node("Reshape", x, _int64(ys[0].shape), allowzero=1)


@writes_function(ConstantWeight)
def _constant_weight(graph: Any, ys: Any, call: Any, x: Any) -> str:
    return graph.node("Identity", x)


@writes("transpose")
def _transpose(graph: Any, ys: Any, x: Any, axes: Any) -> str:
    if x.ndim == 0:
        return graph.node("Identity", x)
    order = range(x.ndim)[::-1] if axes is None else (a % x.ndim for a in axes)
    return graph.node("Transpose", x, perm=list(order))


@writes("swapaxes")
def _swapaxes(graph: Any, ys: Any, x: Any, axis1: int, axis2: int) -> str:
    order = list(range(x.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return graph.node("Transpose", x, perm=order)


@writes("broadcast_to")
def _broadcast_to(graph: Any, ys: Any, x: Any, shape: Any) -> str:
    return graph.node("Expand", x, _int64(ys[0].shape))


@writes("concat")
def _concat(graph: Any, ys: Any, xs: Any, axis: int) -> str:
    return graph.node("Concat", *xs, axis=axis)


@writes("stack")
def _stack(graph: Any, ys: Any, xs: Any, axis: int) -> str:
    axes = _int64([axis % ys[0].ndim])
    return graph.node(
        "Concat",
        *(graph.node("Unsqueeze", x, axes) for x in xs),
        axis=axis % ys[0].ndim,
    )


@writes("split_axis")
def _split_axis(graph: Any, ys: Any, x: Any, indices: Any, axis: int) -> Sequence[str]:
    sizes = _int64([y.shape[axis] for y in ys])
    if len(ys) == 1:
        return [graph.node("Identity", x)]
    return graph.node("Split", x, sizes, axis=axis, outputs=len(ys))


@writes("separate")
def _separate(graph: Any, ys: Any, x: Any, axis: int) -> Sequence[str]:
    slices = [
        graph.node("Gather", x, numpy.asarray(i, numpy.int64), axis=axis)
        for i in range(len(ys))
    ]
    return slices


@writes("pad")
def _pad(graph: Any, ys: Any, x: Any, before: Any, after: Any, value: float) -> str:
    pads = _int64([*before, *after])
    return graph.node("Pad", x, pads, numpy.asarray(value, x.dtype))


@writes("pad_by_copy")
def _pad_by_copy(
    graph: Any, ys: Any, x: Any, before: Any, after: Any, mode: Any
) -> str:
    y = x
    for axis, (n, *widths) in enumerate(zip(x.shape, before, after)):
        if any(widths):
            index = numpy.pad(numpy.arange(n), widths, mode)
            y = graph.node("Gather", y, index, axis=axis)
    return y if y is not x else graph.node("Identity", x)


@writes("slice")
def _slice(graph: Any, ys: Any, x: Any, ranges: Any) -> str:
    if not ranges:
        return graph.node("Identity", x)
    starts, lengths, steps = zip(*ranges)
    ends = [s + n * step for s, n, step in zip(starts, lengths, steps)]
    # ONNX counts a negative end from the last element.
    ends = [e if e >= 0 else numpy.iinfo(numpy.int64).min for e in ends]
    axes = range(len(ranges))
    return graph.node("Slice", x, *map(_int64, (starts, ends, axes, steps)))


@writes("cast")
def _cast(graph: Any, ys: Any, x: Any, dtype: Any) -> str:
    import onnx

    to = onnx.helper.np_dtype_to_tensor_dtype(ys[0].dtype)
    return graph.node("Cast", x, to=to)
