"""The name of an operation, and its bytes and floating-point operations by shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from renga import _core

Shape = Sequence[int]

_OF_THE_CORE = (_core.Call, _core.Node)


class Cost(NamedTuple):
    """Bytes and floating-point operations; None where unknown."""

    bytes: int | None
    flops: int | None


def operation_name(function: Any) -> str:
    """The same name forward and backward, where the core's labels differ."""
    label = function.label
    if not isinstance(function, _OF_THE_CORE):
        return label
    squashed = label.lower().replace("_", "").removesuffix("function")
    return _OTHER_NAMES.get(label) or _NAMES.get(squashed, label)


def forward_cost(function: Any, in_data: Sequence[Any]) -> Cost:
    """The cost of what has just been computed from ``in_data``.

    Every input is read once and every output written once. The outputs of a
    Python function outside of the graph are unknown.
    """
    ys = [reference() for reference in function.outputs or ()]
    if not ys or None in ys:
        return Cost(None, None)
    xs = [x for x in in_data if x is not None]
    flops = _product_flops(function, xs, ys[0])
    # Hooks receive a bfloat16 array as a copy in float32.
    read = function.in_bytes if isinstance(function, _core.Call) else _bytes(xs)
    return Cost(read + _bytes(ys), flops)


def backward_cost(function: Any, out_grad: Sequence[Any]) -> Cost:
    """The cost of the gradients of a function's inputs.

    Every input and every output's gradient is read once, and the gradient written of
    each input that requires one.
    """
    xs = function.inputs
    if xs is None:
        return Cost(None, None)
    # Gradients have the dtypes of the outputs.
    ys = [reference() for reference in function.outputs or ()]
    gys = [y or gy for y, gy in zip(ys, out_grad) if gy is not None]
    wanted = [x for x in xs if x.requires_grad]
    flops = _product_flops(function, xs, gys[0])
    if flops is not None:
        flops *= sum(x.requires_grad for x in xs[:2])
    return Cost(_bytes(xs) + _bytes(gys) + _bytes(wanted), flops)


def _bytes(arrays: Sequence[Any]) -> int:
    return sum(x.nbytes for x in arrays)


def _product_flops(function: Any, xs: Sequence[Any], y: Any) -> int | None:
    terms = _TERMS.get(operation_name(function))
    if terms is None or not isinstance(function, _OF_THE_CORE):
        return None
    return 2 * terms(xs[0].shape, xs[1].shape, y.shape)


def _convolution_terms(x: Shape, w: Shape, y: Shape) -> int:
    return math.prod(y) * math.prod(w[1:])


def _deconvolution_terms(x: Shape, w: Shape, y: Shape) -> int:
    return math.prod(x) * math.prod(w[1:])


def _linear_terms(x: Shape, w: Shape, y: Shape) -> int:
    return math.prod(x) * w[0]


def _matmul_terms(a: Shape, b: Shape, y: Shape) -> int:
    if len(a) == 1 or len(b) == 1:
        return math.prod(y) * (a if len(a) == 1 else b)[0]
    # Either may be transposed: mk * kn / mn is k squared whichever axis k is.
    mn = math.prod(y[-2:])
    k = math.isqrt(math.prod(a[-2:]) * math.prod(b[-2:]) // mn) if mn else 0
    return math.prod(y) * k


# The number of multiply-adds, each two floating-point operations, without the bias.
_TERMS: dict[str, Callable[[Shape, Shape, Shape], int]] = {
    "convolution_2d": _convolution_terms,
    "deconvolution_2d": _deconvolution_terms,
    "linear": _linear_terms,
    "matmul": _matmul_terms,
}

_NAMES = {entry[0].replace("_", ""): entry[0] for entry in _core.ops.entries}

_OTHER_NAMES = {
    "GetItem": "slice",
    "MaxPoolingND": "max_pooling_2d",
    "-_": "negative",
    "_ + _": "add",
    "_ - _": "subtract",
    "_ * _": "multiply",
    "_ / _": "divide",
    "_ // _": "floor_divide",
    "_ ** _": "power",
    "_ @ _": "matmul",
}
