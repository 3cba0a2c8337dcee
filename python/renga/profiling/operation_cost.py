"""The bytes and floating-point operations of an operation, by shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from renga import _core
from renga._core import Products
from renga.core.operations import operation_of
from renga.core.types import ArrayLike

Shape = Sequence[int]


class HasShape(Protocol):
    """What has the shape of an array: it, or a Variable or Value in its place."""

    @property
    def shape(self) -> Shape: ...


class OperationCost(NamedTuple):
    """Bytes and floating-point operations; None where unknown."""

    bytes: int | None
    flops: int | None


def forward_cost(function: Any, in_data: Sequence[ArrayLike]) -> OperationCost:
    """The cost of what has just been computed from ``in_data``.

    Every input is read once and every output written once. The outputs of a
    Python function outside of the graph are unknown.
    """
    ys = [reference() for reference in function.outputs or ()]
    if not ys or None in ys:
        return OperationCost(None, None)
    xs = [x for x in in_data if x is not None]
    if not isinstance(function, _core.Call):
        return OperationCost(_bytes(xs) + _bytes(ys), None)
    operation = operation_of(function)
    flops = None
    if operation is not None:
        flops = forward_flops(operation, function.arguments, ys[0])
    # Hooks receive a bfloat16 array as a copy in float32.
    return OperationCost(function.in_bytes + _bytes(ys), flops)


def backward_cost(function: Any, out_grad: Sequence[ArrayLike]) -> OperationCost:
    """The cost of the gradients of a function's inputs, as it has just been paid."""
    if function.inputs is None:
        return OperationCost(None, None)
    # Gradients have the dtypes of the outputs.
    ys = [reference() for reference in function.outputs or ()]
    gys = [y or gy for y, gy in zip(ys, out_grad) if gy is not None]
    return gradients_cost(operation_of(function), function.inputs, gys)


def gradients_cost(
    operation: _core.Operation | None, xs: Sequence[Any], gys: Sequence[Any]
) -> OperationCost:
    """The cost of the gradients of operands, from those of results.

    Every operand and every result's gradient is read once, and the gradient written of
    each operand that requires one.
    """
    wanted = [x for x in xs if x.requires_grad]
    flops = _backward_flops(operation, xs, gys[0])
    return OperationCost(_bytes(xs) + _bytes(gys) + _bytes(wanted), flops)


def forward_flops(
    operation: _core.Operation, arguments: Sequence[Any], y: HasShape
) -> int:
    """The floating-point operations of a call.

    Args:
        arguments: what the operation takes, of arrays and variables the shapes.
        y: the first result.
    """
    flops, names = operation.flops, operation.arguments
    size = math.prod(y.shape)
    total = flops.per_output * size
    if flops.per_input:
        total += flops.per_input * math.prod(arguments[0].shape)
    if flops.per_window:
        ksize, *_ = arguments[names.index("window")]
        total += flops.per_window * size * math.prod(ksize)
    if flops.products != Products.none:
        x, w = arguments[0], arguments[names.index("W") if "W" in names else 1]
        total += 2 * _PRODUCTS[flops.products](x.shape, w.shape, y.shape)
    return total


def _backward_flops(
    operation: _core.Operation | None, xs: Sequence[Any], y: Any
) -> int | None:
    """Known of a product of two factors: each gradient has as many products."""
    flops = None if operation is None else operation.flops
    # A recurrent layer has elementwise functions between its products.
    if flops is None or flops.products == Products.none or flops.per_output:
        return None
    a, b = xs[:2]
    products = _PRODUCTS[flops.products](a.shape, b.shape, y.shape)
    return 2 * products * (a.requires_grad + b.requires_grad)


def _bytes(arrays: Sequence[Any]) -> int:
    return sum(x.nbytes for x in arrays)


def _matmul_products(a: Shape, b: Shape, y: Shape) -> int:
    if len(a) == 1 or len(b) == 1:
        return math.prod(y) * (a if len(a) == 1 else b)[0]
    # Either may be transposed: mk * kn / mn is k squared whichever axis k is.
    mn = math.prod(y[-2:])
    k = math.isqrt(math.prod(a[-2:]) * math.prod(b[-2:]) // mn) if mn else 0
    return math.prod(y) * k


_PRODUCTS: dict[Products, Callable[[Shape, Shape, Shape], int]] = {
    Products.matmul: _matmul_products,
    Products.per_output: lambda x, w, y: math.prod(y) * math.prod(w[1:]),
    Products.per_input: lambda x, w, y: math.prod(x) * math.prod(w[1:]),
    Products.weight_grad: lambda gy, x, gw: math.prod(gy) * math.prod(gw[1:]),
    Products.attention: lambda q, k, y: (math.prod(q) + math.prod(y)) * k[2],
}
