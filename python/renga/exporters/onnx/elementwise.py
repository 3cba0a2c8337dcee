"""ONNX nodes of arithmetic, activations, reductions and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import as_array
from renga.exporters.onnx.registry import (
    OPERATORS,
    Writer,
    writes,
)
from renga.program import Value


def _operator(name: str) -> Writer:
    """A writer of the operator with the same operands and no attributes."""

    def write(graph: Any, ys: Sequence[Value], *xs: object) -> Sequence[str]:
        return [graph.node(name, *(_operand(x, ys[0].dtype) for x in xs))]

    return write


def _reduction(name: str) -> Writer:
    def write(
        graph: Any,
        ys: Sequence[Value],
        x: Value,
        axis: Sequence[int] | None,
        keepdims: bool,
    ) -> Sequence[str]:
        return [graph.node(name, x, _axes(axis), keepdims=int(keepdims))]

    return write


OPERATORS.update({o.name: _operator(o.onnx) for o in _core.ops.entries if o.onnx})
OPERATORS["max"] = _reduction("ReduceMax")
OPERATORS["min"] = _reduction("ReduceMin")
OPERATORS["prod"] = _reduction("ReduceProd")
OPERATORS["sum"] = _reduction("ReduceSum")
OPERATORS["sum_of_squares"] = _reduction("ReduceSumSquare")


def _operand(x: Any, dtype: Any) -> Any:
    return x if isinstance(x, Value) else numpy.asarray(as_array(x), dtype)


def _axes(axis: Any) -> Any:
    """The axes of a reduction as an input; None for all."""
    return None if axis is None else numpy.atleast_1d(numpy.int64(axis))


@writes("square")
def _square(graph: Any, ys: Any, x: Any) -> Sequence[str]:
    return [graph.node("Mul", x, x)]


@writes("rsqrt")
def _rsqrt(graph: Any, ys: Any, x: Any) -> Sequence[str]:
    return [graph.node("Reciprocal", graph.node("Sqrt", x))]


@writes("expm1")
def _expm1(graph: Any, ys: Any, x: Any) -> Sequence[str]:
    return [graph.node("Sub", graph.node("Exp", x), numpy.ones((), x.dtype))]


@writes("log1p")
def _log1p(graph: Any, ys: Any, x: Any) -> Sequence[str]:
    return [graph.node("Log", graph.node("Add", x, numpy.ones((), x.dtype)))]


def _log_of_base(base: float) -> Writer:
    def write(graph: Any, ys: Any, x: ArrayLike) -> Sequence[str]:
        scale = numpy.asarray(1 / numpy.log(base), x.dtype)
        return [graph.node("Mul", graph.node("Log", x), scale)]

    return write


OPERATORS["log2"] = _log_of_base(2)
OPERATORS["log10"] = _log_of_base(10)


@writes("leaky_relu")
def _leaky_relu(graph: Any, ys: Any, x: Any, slope: float) -> Sequence[str]:
    return [graph.node("LeakyRelu", x, alpha=slope)]


@writes("elu")
def _elu(graph: Any, ys: Any, x: Any, alpha: float) -> Sequence[str]:
    return [graph.node("Elu", x, alpha=alpha)]


@writes("selu")
def _selu(graph: Any, ys: Any, x: Any, alpha: float, scale: float) -> Sequence[str]:
    return [graph.node("Selu", x, alpha=alpha, gamma=scale)]


@writes("softplus")
def _softplus(graph: Any, ys: Any, x: Any, beta: float) -> Sequence[str]:
    beta_array = numpy.asarray(beta, x.dtype)
    scaled = graph.node("Softplus", graph.node("Mul", x, beta_array))
    return [graph.node("Div", scaled, beta_array)]


@writes("clipped_relu")
def _clipped_relu(graph: Any, ys: Any, x: Any, z: float) -> Sequence[str]:
    return [graph.node("Clip", x, numpy.zeros((), x.dtype), numpy.asarray(z, x.dtype))]


@writes("gelu")
def _gelu(graph: Any, ys: Any, x: Any, approximate: str) -> Sequence[str]:
    half, one = numpy.asarray(0.5, x.dtype), numpy.ones((), x.dtype)
    if approximate == "none":
        bent = graph.node("Erf", graph.node("Mul", x, numpy.asarray(0.5**0.5, x.dtype)))
    else:
        scale = numpy.asarray((2 / numpy.pi) ** 0.5, x.dtype)
        cube = graph.node("Mul", graph.node("Mul", x, x), x)
        cube = graph.node("Mul", cube, numpy.asarray(0.044715, x.dtype))
        bent = graph.node("Tanh", graph.node("Mul", graph.node("Add", x, cube), scale))
    factor = graph.node("Mul", graph.node("Add", bent, one), half)
    return [graph.node("Mul", x, factor)]


@writes("silu")
def _silu(graph: Any, ys: Any, x: Any) -> Sequence[str]:
    return [graph.node("Mul", x, graph.node("Sigmoid", x))]


@writes("clip")
def _clip(graph: Any, ys: Any, x: Any, x_min: Any, x_max: Any) -> Sequence[str]:
    bounds = (None if b is None else numpy.asarray(b, x.dtype) for b in (x_min, x_max))
    return [graph.node("Clip", x, *bounds)]


@writes("where")
def _where(graph: Any, ys: Any, condition: Any, x: Any, y: Any) -> Sequence[str]:
    return [graph.node("Where", condition, x, y)]


@writes("sum_to")
def _sum_to(graph: Any, ys: Any, x: Any, shape: Any) -> Sequence[str]:
    added = x.ndim - len(shape)
    reduced = [i for i, n in enumerate(shape, added) if n == 1 != x.shape[i]]
    y = graph.node("ReduceSum", x, _axes([*range(added), *reduced]), keepdims=1)
    return [graph.node("Squeeze", y, _axes(range(added)))] if added else [y]


@writes("logsumexp")
def _logsumexp(graph: Any, ys: Any, x: Any, axis: Any) -> Sequence[str]:
    return [graph.node("ReduceLogSumExp", x, _axes(axis), keepdims=0)]


@writes("floor_divide")
def _floor_divide(graph: Any, ys: Any, a: Any, b: Any) -> Sequence[str]:
    operands = (_operand(x, ys[0].dtype) for x in (a, b))
    return [graph.node("Floor", graph.node("Div", *operands))]


@writes("fmod")
def _fmod(graph: Any, ys: Any, a: Any, b: Any) -> Sequence[str]:
    return [graph.node("Mod", *(_operand(x, ys[0].dtype) for x in (a, b)), fmod=1)]


@writes("squared_difference")
def _squared_difference(graph: Any, ys: Any, a: Any, b: Any) -> Sequence[str]:
    d = graph.node("Sub", *(_operand(x, ys[0].dtype) for x in (a, b)))
    return [graph.node("Mul", d, d)]


@writes("linear_interpolate")
def _linear_interpolate(graph: Any, ys: Any, p: Any, x: Any, y: Any) -> Sequence[str]:
    p, x, y = (_operand(v, ys[0].dtype) for v in (p, x, y))
    rest = graph.node("Sub", numpy.ones((), ys[0].dtype), p)
    return [graph.node("Add", graph.node("Mul", p, x), graph.node("Mul", rest, y))]


@writes("rotate_pairs")
def _rotate_pairs(
    graph: Any, ys: Any, x: Any, cosines: Any, sines: Any
) -> Sequence[str]:
    cosines, sines = (_operand(v, x.dtype) for v in (cosines, sines))
    sizes = numpy.full(2, x.shape[-1] // 2, numpy.int64)
    halves = graph.node("Split", x, sizes, axis=-1, outputs=2)
    rotated = graph.node("Concat", graph.node("Neg", halves[1]), halves[0], axis=-1)
    tables = (numpy.concatenate([v, v], 1) for v in (cosines, sines))
    products = [graph.node("Mul", v, w) for v, w in zip((x, rotated), tables)]
    return [graph.node("Add", *products)]


@writes("bernoulli_nll")
def _bernoulli_nll(graph: Any, ys: Any, x: Any, t: Any) -> Sequence[str]:
    x, t = (_operand(v, ys[0].dtype) for v in (x, t))
    return [graph.node("Sub", graph.node("Softplus", x), graph.node("Mul", x, t))]


@writes("huber")
def _huber(graph: Any, ys: Any, x: Any, t: Any, delta: Any) -> Sequence[str]:
    x, t = (_operand(v, ys[0].dtype) for v in (x, t))
    size = graph.node("Abs", graph.node("Sub", x, t))
    most, half = (numpy.asarray(v, ys[0].dtype) for v in (delta, 0.5))
    near = graph.node("Min", size, most)
    rest = graph.node("Sub", size, graph.node("Mul", near, half))
    return [graph.node("Mul", near, rest)]


@writes("sigmoid_nll")
def _sigmoid_nll(graph: Any, ys: Any, x: Any, t: Any) -> Sequence[str]:
    t = _operand(t, ys[0].dtype)
    zero, one, two = (numpy.asarray(v, ys[0].dtype) for v in (0, 1, 2))
    sign = graph.node("Sub", one, graph.node("Mul", t, two))
    loss = graph.node("Softplus", graph.node("Mul", x, sign))
    return [graph.node("Where", graph.node("Less", t, zero), zero, loss)]


@writes("fix")
def _fix(graph: Any, ys: Any, x: Any) -> Sequence[str]:
    size = graph.node("Floor", graph.node("Abs", x))
    return [graph.node("Mul", graph.node("Sign", x), size)]


@writes("erfc")
def _erfc(graph: Any, ys: Any, x: Any) -> Sequence[str]:
    return [graph.node("Sub", numpy.ones((), x.dtype), graph.node("Erf", x))]


@writes("ndtr")
def _ndtr(graph: Any, ys: Any, x: Any) -> Sequence[str]:
    one, half, root = (numpy.asarray(v, x.dtype) for v in (1, 0.5, 0.5**0.5))
    erf = graph.node("Erf", graph.node("Mul", x, root))
    return [graph.node("Mul", graph.node("Add", erf, one), half)]


@writes("matmul")
def _matmul(
    graph: Any, ys: Any, a: Any, b: Any, transa: bool = False, transb: bool = False
) -> Sequence[str]:
    if transa:
        a = _transposed(graph, a)
    if transb:
        b = _transposed(graph, b)
    return [graph.node("MatMul", a, b)]


def _transposed(graph: Any, x: Any) -> Any:
    if x.ndim < 2:
        return x
    axes = [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2]
    return graph.node("Transpose", x, perm=axes)


@writes("linear")
def _linear(graph: Any, ys: Any, x: Any, W: Any, b: Any) -> Sequence[str]:
    return [graph.node("Gemm", x, W, *([] if b is None else [b]), transB=1)]


@writes("dropout")
def _dropout(graph: Any, ys: Any, x: Any, ratio: float, seed: int) -> Sequence[str]:
    """Of training: the factors are the runtime's."""
    return [graph.node("Dropout", x, numpy.float32(ratio), numpy.bool_(True))]


@writes("scaled_dot_product_attention")
def _attention(
    graph: Any,
    ys: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    seed: int,
) -> Sequence[str]:
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    products = graph.node("MatMul", q, _transposed(graph, k))
    scores = graph.node("Mul", products, numpy.asarray(scale, q.dtype))
    least = numpy.asarray(numpy.finfo(q.dtype).min, q.dtype)
    if is_causal:
        allowed = numpy.tri(q.shape[2], k.shape[2], dtype=bool)
        scores = graph.node("Where", allowed, scores, least)
    if mask is not None and mask.dtype == bool:
        scores = graph.node("Where", mask, scores, least)
    elif mask is not None:
        scores = graph.node("Add", scores, mask)
    return [graph.node("MatMul", graph.node("Softmax", scores, axis=-1), v)]


@writes("softmax")
def _softmax(graph: Any, ys: Any, x: Any, axis: int) -> Sequence[str]:
    return [graph.node("Softmax", x, axis=axis)]


@writes("log_softmax")
def _log_softmax(graph: Any, ys: Any, x: Any, axis: int) -> Sequence[str]:
    return [graph.node("LogSoftmax", x, axis=axis)]
