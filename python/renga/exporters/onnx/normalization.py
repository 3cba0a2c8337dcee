"""ONNX nodes of batch, layer, RMS and group normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga.exporters.onnx.registry import writes
from renga.program import Value


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
) -> Sequence[str]:
    reduced = _reduced(x, gamma, axis)
    if x.ndim >= 2 and reduced == (0, *range(2, x.ndim)):
        flat = (gamma, beta, mean, var)
        return [graph.node("BatchNormalization", x, *flat, epsilon=eps)]
    mean, var = (_beside(graph, v, x, reduced) for v in (mean, var))
    return [
        _scaled(graph, graph.node("Sub", x, mean), var, gamma, beta, eps, reduced, x)
    ]


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
) -> Sequence[str]:
    reduced = _reduced(x, gamma, axis)
    axes = numpy.array(reduced, numpy.int64)
    centred = graph.node("Sub", x, graph.node("ReduceMean", x, axes, keepdims=1))
    square = graph.node("Mul", centred, centred)
    var = graph.node("ReduceMean", square, axes, keepdims=1)
    return [_scaled(graph, centred, var, gamma, beta, eps, reduced, x)]


@writes("layer_normalization")
def _of_rows(
    graph: Any, ys: Any, x: Any, gamma: Any, beta: Any, eps: float
) -> Sequence[str]:
    return [
        graph.node("LayerNormalization", x, gamma, beta, axis=-gamma.ndim, epsilon=eps)
    ]


@writes("rms_normalization")
def _by_root_mean_square(
    graph: Any, ys: Any, x: Any, gamma: Any, eps: float
) -> Sequence[str]:
    axes = numpy.arange(-gamma.ndim, 0)
    mean = graph.node("ReduceMean", graph.node("Mul", x, x), axes, keepdims=1)
    added = graph.node("Add", mean, numpy.asarray(eps, x.dtype))
    y = graph.node("Div", x, graph.node("Sqrt", added))
    return [graph.node("Mul", y, gamma)]


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


def _scaled(
    graph: Any,
    centred: str,
    var: str,
    gamma: Any,
    beta: Any,
    eps: float,
    reduced: tuple[int, ...],
    x: Any,
) -> str:
    added = graph.node("Add", var, numpy.asarray(eps, x.dtype))
    y = graph.node("Div", centred, graph.node("Sqrt", added))
    # Group normalization scales afterwards; its constants here are as many as there are
    # samples.
    if not _is_constant(gamma, 1):
        y = graph.node("Mul", y, _beside(graph, gamma, x, reduced))
    if not _is_constant(beta, 0):
        y = graph.node("Add", y, _beside(graph, beta, x, reduced))
    return y


def _is_constant(x: Any, value: float) -> bool:
    if isinstance(x, Value):
        return x.kind == "constant" and _is_constant(x.variable.array, value)
    return bool((x == value).all())
