"""ONNX nodes of batch, layer, RMS and group normalization."""

from __future__ import annotations

from typing import Any

import numpy

from renga.exporters.onnx.registry import writes


@writes("fixed_batch_normalization")
def _fixed(
    graph: Any,
    ys: Any,
    x: Any,
    gamma: Any,
    beta: Any,
    mean: Any,
    var: Any,
    eps: float,
    axis: Any,
) -> str:
    reduced = _reduced(x, gamma, axis)
    if x.ndim >= 2 and reduced == (0, *range(2, x.ndim)):
        flat = (gamma, beta, mean, var)
        return graph.node("BatchNormalization", x, *flat, epsilon=eps)
    wide = _cast(graph, x, x, gamma)
    mean, var = (_beside(graph, v, x, reduced) for v in (mean, var))
    centred = graph.node("Sub", wide, mean)
    return _normalized(graph, centred, var, gamma, beta, eps, reduced, x)


@writes("batch_normalization")
def _of_the_batch(
    graph: Any,
    ys: Any,
    x: Any,
    gamma: Any,
    beta: Any,
    eps: float,
    running_mean: Any,
    running_var: Any,
    decay: float,
    axis: Any,
) -> str:
    reduced = _reduced(x, gamma, axis)
    axes = numpy.array(reduced, numpy.int64)
    wide = _cast(graph, x, x, gamma)
    centred = graph.node("Sub", wide, graph.node("ReduceMean", wide, axes, keepdims=1))
    square = graph.node("Mul", centred, centred)
    var = graph.node("ReduceMean", square, axes, keepdims=1)
    return _normalized(graph, centred, var, gamma, beta, eps, reduced, x)


@writes("group_normalization")
def _of_groups(
    graph: Any, ys: Any, x: Any, groups: int, gamma: Any, beta: Any, eps: float
) -> str:
    wide = _cast(graph, x, x, gamma)
    rows = graph.node("Reshape", wide, numpy.array([0, groups, -1]))
    one, zero = numpy.ones(groups, gamma.dtype), numpy.zeros(groups, gamma.dtype)
    rows = graph.node("InstanceNormalization", rows, one, zero, epsilon=eps)
    y = graph.node("Reshape", rows, graph.node("Shape", x))
    return _scaled(graph, y, gamma, beta, (0, *range(2, x.ndim)), x)


@writes("layer_normalization")
def _of_rows(graph: Any, ys: Any, x: Any, gamma: Any, beta: Any, eps: float) -> str:
    return graph.node(
        "LayerNormalization", x, gamma, beta, axis=-gamma.ndim, epsilon=eps
    )


@writes("normalize")
def _to_length_1(graph: Any, ys: Any, x: Any, eps: float, axis: Any) -> str:
    axes = numpy.array(_reduced(x, x, axis), numpy.int64)
    squares = graph.node("ReduceSum", graph.node("Mul", x, x), axes, keepdims=1)
    length = graph.node("Sqrt", squares)
    length = graph.node("Add", length, numpy.asarray(eps, x.dtype))
    return graph.node("Div", x, length)


@writes("rms_normalization")
def _by_root_mean_square(graph: Any, ys: Any, x: Any, gamma: Any, eps: float) -> str:
    axes = numpy.arange(-gamma.ndim, 0)
    mean = graph.node("ReduceMean", graph.node("Mul", x, x), axes, keepdims=1)
    added = graph.node("Add", mean, numpy.asarray(eps, x.dtype))
    y = graph.node("Div", x, graph.node("Sqrt", added))
    return graph.node("Mul", y, gamma)


def _reduced(x: Any, gamma: Any, axis: Any) -> tuple[int, ...]:
    """The axes over which the statistics are."""
    if axis is None:
        return (0, *range(1 + gamma.ndim, x.ndim))
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _beside(graph: Any, v: Any, x: Any, reduced: tuple[int, ...]) -> str:
    """``v``, of the axes that are not reduced, shaped to be broadcast to x."""
    return (
        graph.node("Unsqueeze", v, numpy.array(reduced, numpy.int64)) if reduced else v
    )


def _normalized(
    graph: Any,
    centred: str,
    var: str,
    gamma: Any,
    beta: Any,
    eps: float,
    reduced: tuple[int, ...],
    x: Any,
) -> str:
    added = graph.node("Add", var, numpy.asarray(eps, gamma.dtype))
    y = graph.node("Div", centred, graph.node("Sqrt", added))
    return _scaled(graph, y, gamma, beta, reduced, x)


def _scaled(
    graph: Any, y: str, gamma: Any, beta: Any, reduced: tuple[int, ...], x: Any
) -> str:
    """``y gamma + beta`` in the dtype of ``x``."""
    y = graph.node("Mul", y, _beside(graph, gamma, x, reduced))
    y = graph.node("Add", y, _beside(graph, beta, x, reduced))
    return _cast(graph, y, gamma, x)


def _cast(graph: Any, y: Any, from_: Any, to: Any) -> Any:
    """``y``, of the dtype of one value, in that of another one.

    Beside parameters in float32, half precision is normalized in float32.
    """
    import onnx

    if from_.dtype == to.dtype:
        return y
    dtype = onnx.helper.np_dtype_to_tensor_dtype(to.dtype)
    return graph.node("Cast", y, to=dtype)
