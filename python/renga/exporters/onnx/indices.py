"""ONNX nodes of operations that pick elements, and of running sums."""

from __future__ import annotations

import math
from typing import Any

import numpy

from renga.core.types import ArrayLike
from renga.exporters.onnx.images import window_starts
from renga.exporters.onnx.registry import OPERATORS, Writer, writes, writes_function
from renga.functions.array.get_item import PickItems, PutItems
from renga.functions.array.order import InvertPermutation


def _int64(*values: int) -> numpy.ndarray:
    return numpy.array(values, numpy.int64)


@writes("embed_id")
def _embed_id(graph: Any, ys: Any, x: Any, W: Any, ignore_label: Any) -> str:
    if ignore_label is None:
        return graph.node("Gather", W, x)
    ignored = graph.node("Equal", x, numpy.asarray(ignore_label, x.dtype))
    # The ignored label need not be a row.
    rows = graph.node("Where", ignored, numpy.zeros((), x.dtype), x)
    taken = graph.node("Gather", W, rows)
    column = graph.node("Unsqueeze", ignored, _int64(len(x.shape)))
    return graph.node("Where", column, numpy.zeros((), ys[0].dtype), taken)


@writes("select_item")
def _select_item(graph: Any, ys: Any, x: Any, t: Any) -> str:
    column = graph.node("Unsqueeze", t, _int64(1))
    taken = graph.node("GatherElements", x, column, axis=1)
    return graph.node("Squeeze", taken, _int64(1))


def _extreme_index(op: str) -> Writer:
    def write(graph: Any, ys: Any, x: ArrayLike, axis: Any) -> str:
        import onnx

        x, axis = _line(graph, x, axis)
        index = graph.node(op, x, axis=axis, keepdims=0)
        to = onnx.helper.np_dtype_to_tensor_dtype(ys[0].dtype)
        return graph.node("Cast", index, to=to)

    return write


OPERATORS["argmax"] = _extreme_index("ArgMax")
OPERATORS["argmin"] = _extreme_index("ArgMin")


@writes_function(InvertPermutation)
def _invert_permutation(graph: Any, ys: Any, call: Any, indices: Any) -> str:
    positions = numpy.arange(indices.size)
    at = _indices(graph, indices)
    put = graph.node("ScatterElements", numpy.zeros_like(positions), at, positions)
    return put


@writes_function(PickItems)
def _pick_items(graph: Any, ys: Any, call: Any, x: Any) -> str:
    return _gathered(graph, x, _numbers(x)[call.node.keys])


def _numbers(x: Any) -> numpy.ndarray:
    """Of the elements, in row-major order."""
    return numpy.arange(x.size, dtype=numpy.int64).reshape(x.shape)


def _gathered(graph: Any, x: Any, index: numpy.ndarray) -> str:
    """The elements of these numbers."""
    if _is_same_of_each(index, x):
        # In each sample the same elements, however many samples there are.
        samples = graph.node("Reshape", x, _int64(0, -1))
        return graph.node("Gather", samples, index[0], axis=1)
    return graph.node("Gather", graph.node("Reshape", x, _int64(-1)), index)


@writes("take")
def _take(graph: Any, ys: Any, x: Any, indices: Any, axis: int) -> str:
    return graph.node("Gather", x, _indices(graph, indices), axis=axis)


@writes("index_add")
def _index_add(graph: Any, ys: Any, x: Any, indices: Any, y: Any, axis: int) -> str:
    before, n, after = (
        math.prod(x.shape[part])
        for part in (slice(axis), slice(axis, axis + 1), slice(axis + 1, None))
    )
    rows = _int64(before, indices.size, after)
    column = graph.node("Reshape", _indices(graph, indices), _int64(1, -1, 1))
    added = graph.node(
        "ScatterElements",
        graph.node("Reshape", x, _int64(before, n, after)),
        graph.node("Expand", column, rows),
        graph.node("Reshape", y, rows),
        axis=1,
        reduction="add",
    )
    return graph.node("Reshape", added, _int64(*x.shape), allowzero=1)


def _indices(graph: Any, indices: Any) -> Any:
    """Integers of a dtype that ONNX takes as indices."""
    import onnx

    if indices.dtype.char in "il":
        return indices
    return graph.node("Cast", indices, to=onnx.TensorProto.INT64)


@writes("diagonal")
def _diagonal(graph: Any, ys: Any, x: Any, offset: int, axis1: int, axis2: int) -> str:
    index = numpy.diagonal(_numbers(x), offset, axis1, axis2)
    return _gathered(graph, x, index.copy())


@writes("as_strided")
def _as_strided(
    graph: Any, ys: Any, x: Any, shape: Any, strides: Any, first: int
) -> str:
    steps = zip(numpy.indices(tuple(shape), sparse=True), strides)
    index = sum((i * stride for i, stride in steps), numpy.full(tuple(shape), first))
    return _gathered(graph, x, index.astype(numpy.int64))


def _is_same_of_each(index: numpy.ndarray, x: Any) -> bool:
    if index.ndim == 0 or len(index) != x.shape[0] or index.size == 0:
        return False
    rows, size = index.reshape(len(index), -1), x.size // len(index)
    first = numpy.arange(len(index))[:, None] * size
    return bool((rows == rows[:1] + first).all() and rows[0].max() < size)


@writes_function(PutItems)
def _put_items(graph: Any, ys: Any, call: Any, gy: Any) -> str:
    index = _numbers(ys[0])[call.node.keys]
    given = graph.node("Expand", gy, _int64(*index.shape))
    flat = graph.node("Reshape", given, _int64(-1))
    return _put(graph, ys[0], _int64(ys[0].size), index.ravel(), flat)


def _put(graph: Any, y: Any, shape: Any, index: Any, terms: str) -> str:
    """Zeros of the shape of ``y``; terms are added along the last axis of ``shape``."""
    put = graph.node(
        "ScatterElements",
        numpy.zeros(shape, y.dtype),
        index,
        terms,
        axis=-1,
        reduction="add",
    )
    reshaped: str = graph.node("Reshape", put, _int64(*y.shape), allowzero=1)
    return reshaped


@writes("upsampling_2d")
def _upsampling(
    graph: Any, ys: Any, x: Any, indices: Any, window: Any, extents: Any
) -> str:
    import onnx

    (rows, columns), width = extents, numpy.int64(window[0][1])
    first_row, first_column = window_starts(x.shape[2:], *window[1:])
    indices = graph.node("Cast", indices, to=onnx.TensorProto.INT64)
    row = graph.node("Add", graph.node("Div", indices, width), first_row)
    column = graph.node("Add", graph.node("Mod", indices, width), first_column)
    zero = numpy.int64(0)
    inside = [
        graph.node(
            "And", graph.node("GreaterOrEqual", at, zero), graph.node("Less", at, n)
        )
        for at, n in ((row, numpy.int64(rows)), (column, numpy.int64(columns)))
    ]
    inside = graph.node("And", *inside)
    pixel = graph.node("Add", graph.node("Mul", row, numpy.int64(columns)), column)
    # Pixels outside of the image add nothing to the first one.
    pixel = graph.node("Where", inside, pixel, zero)
    terms = graph.node("Where", inside, x, numpy.zeros((), x.dtype))
    planes = x.shape[:2]
    flat = _int64(*planes, math.prod(x.shape[2:]))
    lines = [graph.node("Reshape", each, flat, allowzero=1) for each in (pixel, terms)]
    return _put(graph, ys[0], (*planes, rows * columns), *lines)


@writes("cumsum")
def _cumsum(graph: Any, ys: Any, x: Any, axis: Any) -> str:
    x, axis = _line(graph, x, axis)
    return graph.node("CumSum", x, numpy.int64(axis))


@writes("cumprod")
def _cumprod(graph: Any, ys: Any, x: Any, axis: Any) -> str:
    n, step = ys[0].shape[axis or 0], 1
    y, axis = _line(graph, x, axis)

    def cut(start: int, stop: int) -> str:
        return graph.node("Slice", y, *map(_int64, (start, stop, axis)))

    while step < n:  # now each element is a product of 2 step elements
        product = graph.node("Mul", cut(step, n), cut(0, n - step))
        y = graph.node("Concat", cut(0, step), product, axis=axis)
        step *= 2
    return graph.node("Identity", y)


def _line(graph: Any, x: Any, axis: Any) -> tuple[Any, int]:
    """What to go along, and its axis."""
    return (graph.node("Reshape", x, _int64(-1)), 0) if axis is None else (x, axis)
