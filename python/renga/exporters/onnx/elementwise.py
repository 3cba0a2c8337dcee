"""ONNX nodes of arithmetic, activations, reductions and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from renga import _core
from renga.core.variable import as_array
from renga.exporters.onnx.registry import OPERATORS, Writer, writes
from renga.program import Value


def _operator(name: str) -> Writer:
    """A writer of the operator with the same operands and no attributes."""

    def write(graph: Any, ys: Sequence[Value], *xs: object) -> str:
        return graph.node(name, *(_operand(x, ys[0].dtype) for x in xs))

    return write


def _reduction(name: str) -> Writer:
    def write(
        graph: Any,
        ys: Sequence[Value],
        x: Value,
        axis: Sequence[int] | None,
        keepdims: bool,
    ) -> str:
        return graph.node(name, x, _axes(axis), keepdims=int(keepdims))

    return write


def _formula(formula: Callable[..., str]) -> Writer:
    """A writer of nodes that ``formula`` makes of the operands and attributes."""

    def write(graph: Any, ys: Sequence[Value], *arguments: object) -> str:
        return formula(graph.node, *arguments)

    return write


def _number(value: float, like: Any) -> numpy.ndarray:
    return numpy.asarray(value, like.dtype)


_FORMULAS: dict[str, Callable[..., str]] = {
    "clipped_relu": lambda node, x, z: node("Clip", x, _number(0, x), _number(z, x)),
    # Of training: the factors are the runtime's.
    "dropout": lambda node, x, ratio, seed: node(
        "Dropout", x, numpy.float32(ratio), numpy.bool_(True)
    ),
    "elu": lambda node, x, alpha: node("Elu", x, alpha=alpha),
    "erfc": lambda node, x: node("Sub", _number(1, x), node("Erf", x)),
    "expm1": lambda node, x: node("Sub", node("Exp", x), _number(1, x)),
    "fix": lambda node, x: node("Mul", node("Sign", x), node("Floor", node("Abs", x))),
    "leaky_relu": lambda node, x, slope: node("LeakyRelu", x, alpha=slope),
    "linear": lambda node, x, W, b: node(
        "Gemm", x, W, *([] if b is None else [b]), transB=1
    ),
    "log1p": lambda node, x: node("Log", node("Add", x, _number(1, x))),
    "log2": lambda node, x: node("Mul", node("Log", x), _number(1 / numpy.log(2), x)),
    "log10": lambda node, x: node("Mul", node("Log", x), _number(1 / numpy.log(10), x)),
    "log_softmax": lambda node, x, axis: node("LogSoftmax", x, axis=axis),
    "logsumexp": lambda node, x, axis: node(
        "ReduceLogSumExp", x, _axes(axis), keepdims=0
    ),
    "rsqrt": lambda node, x: node("Reciprocal", node("Sqrt", x)),
    "selu": lambda node, x, alpha, scale: node("Selu", x, alpha=alpha, gamma=scale),
    "silu": lambda node, x: node("Mul", x, node("Sigmoid", x)),
    "softmax": lambda node, x, axis: node("Softmax", x, axis=axis),
    "square": lambda node, x: node("Mul", x, x),
    "where": lambda node, condition, x, y: node("Where", condition, x, y),
}
OPERATORS.update({o.name: _operator(o.onnx) for o in _core.ops.entries if o.onnx})
OPERATORS.update({name: _formula(formula) for name, formula in _FORMULAS.items()})
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


@writes("softplus")
def _softplus(graph: Any, ys: Any, x: Any, beta: float) -> str:
    factor = _number(beta, x)
    scaled = graph.node("Softplus", graph.node("Mul", x, factor))
    return graph.node("Div", scaled, factor)


@writes("gelu")
def _gelu(graph: Any, ys: Any, x: Any, approximate: str) -> str:
    half, one = _number(0.5, x), _number(1, x)
    if approximate == "none":
        bent = graph.node("Erf", graph.node("Mul", x, _number(0.5**0.5, x)))
    else:
        scale = _number((2 / numpy.pi) ** 0.5, x)
        cube = graph.node("Mul", graph.node("Mul", x, x), x)
        cube = graph.node("Mul", cube, _number(0.044715, x))
        bent = graph.node("Tanh", graph.node("Mul", graph.node("Add", x, cube), scale))
    factor = graph.node("Mul", graph.node("Add", bent, one), half)
    return graph.node("Mul", x, factor)


@writes("clip")
def _clip(graph: Any, ys: Any, x: Any, x_min: Any, x_max: Any) -> str:
    bounds = (None if b is None else _number(b, x) for b in (x_min, x_max))
    return graph.node("Clip", x, *bounds)


@writes("sum_to")
def _sum_to(graph: Any, ys: Any, x: Any, shape: Any) -> Sequence[str]:
    added = x.ndim - len(shape)
    reduced = [i for i, n in enumerate(shape, added) if n == 1 != x.shape[i]]
    y = graph.node("ReduceSum", x, _axes([*range(added), *reduced]), keepdims=1)
    return [graph.node("Squeeze", y, _axes(range(added)))] if added else [y]


@writes("floor_divide")
def _floor_divide(graph: Any, ys: Any, a: Any, b: Any) -> str:
    operands = (_operand(x, ys[0].dtype) for x in (a, b))
    return graph.node("Floor", graph.node("Div", *operands))


@writes("fmod")
def _fmod(graph: Any, ys: Any, a: Any, b: Any) -> str:
    return graph.node("Mod", *(_operand(x, ys[0].dtype) for x in (a, b)), fmod=1)


@writes("squared_difference")
def _squared_difference(graph: Any, ys: Any, a: Any, b: Any) -> str:
    d = graph.node("Sub", *(_operand(x, ys[0].dtype) for x in (a, b)))
    return graph.node("Mul", d, d)


@writes("linear_interpolate")
def _linear_interpolate(graph: Any, ys: Any, p: Any, x: Any, y: Any) -> str:
    p, x, y = (_operand(v, ys[0].dtype) for v in (p, x, y))
    rest = graph.node("Sub", _number(1, ys[0]), p)
    return graph.node("Add", graph.node("Mul", p, x), graph.node("Mul", rest, y))


@writes("rotate_pairs")
def _rotate_pairs(graph: Any, ys: Any, x: Any, cosines: Any, sines: Any) -> str:
    cosines, sines = (_operand(v, x.dtype) for v in (cosines, sines))
    sizes = numpy.full(2, x.shape[-1] // 2, numpy.int64)
    halves = graph.node("Split", x, sizes, axis=-1, outputs=2)
    rotated = graph.node("Concat", graph.node("Neg", halves[1]), halves[0], axis=-1)
    tables = (numpy.concatenate([v, v], 1) for v in (cosines, sines))
    products = [graph.node("Mul", v, w) for v, w in zip((x, rotated), tables)]
    return graph.node("Add", *products)


@writes("bernoulli_nll")
def _bernoulli_nll(graph: Any, ys: Any, x: Any, t: Any) -> str:
    x, t = (_operand(v, ys[0].dtype) for v in (x, t))
    return graph.node("Sub", graph.node("Softplus", x), graph.node("Mul", x, t))


@writes("huber")
def _huber(graph: Any, ys: Any, x: Any, t: Any, delta: Any) -> str:
    x, t = (_operand(v, ys[0].dtype) for v in (x, t))
    size = graph.node("Abs", graph.node("Sub", x, t))
    most, half = (_number(v, ys[0]) for v in (delta, 0.5))
    near = graph.node("Min", size, most)
    rest = graph.node("Sub", size, graph.node("Mul", near, half))
    return graph.node("Mul", near, rest)


@writes("sigmoid_nll")
def _sigmoid_nll(graph: Any, ys: Any, x: Any, t: Any) -> str:
    t = _operand(t, ys[0].dtype)
    zero, one, two = (_number(v, ys[0]) for v in (0, 1, 2))
    sign = graph.node("Sub", one, graph.node("Mul", t, two))
    loss = graph.node("Softplus", graph.node("Mul", x, sign))
    return graph.node("Where", graph.node("Less", t, zero), zero, loss)


@writes("ndtr")
def _ndtr(graph: Any, ys: Any, x: Any) -> str:
    one, half, root = (_number(v, x) for v in (1, 0.5, 0.5**0.5))
    erf = graph.node("Erf", graph.node("Mul", x, root))
    return graph.node("Mul", graph.node("Add", erf, one), half)


@writes("matmul")
def _matmul(
    graph: Any, ys: Any, a: Any, b: Any, transa: bool = False, transb: bool = False
) -> str:
    if transa:
        a = _transposed(graph, a)
    if transb:
        b = _transposed(graph, b)
    return graph.node("MatMul", a, b)


def _transposed(graph: Any, x: Any) -> Any:
    if x.ndim < 2:
        return x
    axes = [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2]
    return graph.node("Transpose", x, perm=axes)


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
) -> str:
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    products = graph.node("MatMul", q, _transposed(graph, k))
    scores = graph.node("Mul", products, _number(scale, q))
    least = _number(numpy.finfo(q.dtype).min, q)
    if is_causal:
        allowed = numpy.tri(q.shape[2], k.shape[2], dtype=bool)
        scores = graph.node("Where", allowed, scores, least)
    if mask is not None and mask.dtype == bool:
        scores = graph.node("Where", mask, scores, least)
    elif mask is not None:
        scores = graph.node("Add", scores, mask)
    return graph.node("MatMul", graph.node("Softmax", scores, axis=-1), v)
