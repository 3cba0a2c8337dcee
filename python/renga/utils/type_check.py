"""Type checks whose errors contain the expected and the actual values.

``expect(x.ndim == 2, x.shape[1] == W.shape[1])`` compares plain values first. Only
after a failure the check is repeated with expressions, which can be printed.
"""

from __future__ import annotations

import contextlib
import math
import operator
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, Union

import numpy

from renga.core import backend
from renga.core.types import ArrayLike, CalledFunction, DTypeLike
from renga.utils.type_expression import (
    COMPARISON,
    Atom,
    BinaryOperator,
    Call,
    Constant,
    Expr,
    GetAttr,
    GetItem,
    UnaryOperator,
    Variable,
    _repr as _repr,
    evaluate,
    evaluate_parts,
)

__all__ = [
    "Atom",
    "BinaryOperator",
    "BoolBinaryOperator",
    "Call",
    "Constant",
    "Expr",
    "GetAttr",
    "GetItem",
    "InvalidType",
    "LightMode",
    "LightTypeInfoTuple",
    "Testable",
    "TypeInfo",
    "TypeInfoTuple",
    "UnaryOperator",
    "Variable",
    "argname",
    "eval",
    "expect",
    "expect_broadcast_shapes",
    "get_function_check_context",
    "get_light_types",
    "get_types",
    "in_light_mode",
    "light_mode",
    "make_variable",
    "prod",
    "same_types",
]

eval = evaluate
_state = threading.local()


class InvalidType(Exception):
    """The arguments of a function have a wrong number, shape or dtype.

    Has the expected and the actual types; a single string is the entire message.
    """

    def __init__(
        self, expect: str, actual: str | None = None, msg: str | None = None
    ) -> None:
        if msg is None:
            msg = expect
            if actual is not None:
                msg = f"Expect: {expect}\nActual: {actual}"
                function = getattr(_state, "function", None)
                if function is not None:
                    head = f"Invalid operation is performed in: {function} (Forward)"
                    msg = f"\n{head}\n\n{msg}"
        super().__init__(msg)
        self.expect = expect
        self.actual = "" if actual is None else actual


class IndexOutOfRange(IndexError, ValueError):
    """A label, an id or a position is out of range.

    NumPy's IndexError, and the ValueError of Chainer's debug mode.
    """


class Testable:
    """Something that can be demanded to hold."""

    def expect(self) -> None:
        """Raises InvalidType unless it holds."""
        raise NotImplementedError


class BoolBinaryOperator(BinaryOperator, Testable):
    """A comparison; ``inv`` is the operator that prints when it does not hold."""

    def __init__(
        self,
        lhs: object,
        rhs: object,
        exp: str,
        inv: str,
        func: Callable[..., bool],
    ) -> None:
        super().__init__(COMPARISON, lhs, rhs, exp, func)
        self.inv = inv

    def expect(self) -> None:
        left, right = evaluate_parts(self.lhs), evaluate_parts(self.rhs)
        if not self.func(left, right):
            expected = f"{self.lhs} {self.exp} {self.rhs}"
            raise InvalidType(expected, f"{left} {self.inv} {right}")


def _attach_comparison(name: str, exp: str, inv: str) -> None:
    func = getattr(operator, name)

    def compare(self: Expr, other: Any) -> Expr:
        return BoolBinaryOperator(self, other, exp, inv, func)

    setattr(Expr, f"__{name}__", compare)


for _name, _exp, _inv in [
    ("eq", "==", "!="),
    ("ne", "!=", "=="),
    ("lt", "<", ">="),
    ("le", "<=", ">"),
    ("gt", ">", "<="),
    ("ge", ">=", "<"),
]:
    _attach_comparison(_name, _exp, _inv)


class TypeInfo:
    """The shape and dtype of one array."""

    def __init__(self, shape: Sequence[int], dtype: DTypeLike) -> None:
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


class TypeInfoTuple(tuple):
    """The types of a function's inputs, as expressions with names."""

    name: str

    def size(self) -> Variable:
        """The number of inputs."""
        return Variable(len(self), f"{self.name}.size")


class LightTypeInfoTuple(tuple):
    """A function's inputs themselves: arrays have all attributes that checks read."""

    def size(self) -> int:
        """The number of inputs."""
        return len(self)


InTypes = Union[TypeInfoTuple, LightTypeInfoTuple]


class LightMode:
    """Context in which checks compare plain values."""

    def __enter__(self) -> None:
        _state.light = True

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _state.light = False


light_mode = LightMode()


def in_light_mode() -> bool:
    """Whether checks compare plain values in this thread."""
    return getattr(_state, "light", False)


def get_types(
    data: Iterable[ArrayLike],
    name: str,
    accept_none: bool,
    *,
    shapes: Sequence[Sequence[int]] | None = None,
) -> TypeInfoTuple:
    """The types of ``data`` as expressions called ``name[0]``, ``name[1]``, …"""
    assert isinstance(data, Iterable), f"get_types: expected arrays, got {type(data)}"
    types = TypeInfoTuple(
        Variable(_get_type(x, i, shapes, accept_none), f"{name}[{i}]")
        for i, x in enumerate(data)
    )
    types.name = name
    return types


def _get_type(
    x: Any, i: int, shapes: Sequence[Sequence[int]] | None, accept_none: bool
) -> TypeInfo:
    if x is None and accept_none:
        return TypeInfo((), numpy.dtype(numpy.float32))
    return TypeInfo(x.shape if shapes is None else shapes[i], x.dtype)


def get_light_types(
    data: Iterable[ArrayLike], *, shapes: Sequence[Sequence[int]] | None = None
) -> LightTypeInfoTuple:
    """The types of ``data`` as plain values."""
    if shapes is None:
        return LightTypeInfoTuple(data)
    pairs = zip(data, shapes)
    return LightTypeInfoTuple(TypeInfo(shape, x.dtype) for x, shape in pairs)


@contextlib.contextmanager
def get_function_check_context(f: CalledFunction) -> Iterator[None]:
    """Context in which errors name the function node ``f``."""
    outer = getattr(_state, "function", None)
    _state.function = f.label
    try:
        yield
    finally:
        _state.function = outer


def argname(in_types: Sequence[Any], names: Sequence[str]) -> None:
    """Names the inputs; raises InvalidType unless their number is that of ``names``."""
    if len(in_types) != len(names):
        raise InvalidType(f"{len(names)} arguments", f"{len(in_types)} arguments")
    if in_light_mode():
        return
    for in_type, name in zip(in_types, names):
        in_type.name = name


_argname = argname  # the name in function nodes written for Chainer


def expect(*bool_exprs: object) -> None:
    """Raises InvalidType unless every expression holds."""
    if in_light_mode():
        if not all(bool_exprs):
            raise InvalidType("", "")
        return
    for expression in bool_exprs:
        if isinstance(expression, Testable):
            expression.expect()
        elif not evaluate(expression):
            raise InvalidType(str(expression), str(evaluate(expression)))


def expect_broadcast_shapes(*shape_types: object) -> None:
    """Raises InvalidType unless the shapes can be broadcast together."""
    shapes = [evaluate(shape) for shape in shape_types]
    try:
        numpy.broadcast_shapes(*shapes)
    except ValueError:
        names = [
            f"{shape_type} = {shape}" if isinstance(shape_type, Expr) else str(shape)
            for shape_type, shape in zip(shape_types, shapes)
        ]
        raise InvalidType("shapes that broadcast", ", ".join(names)) from None


def make_variable(value: object, name: str) -> Any:
    """``value`` as an expression that prints as ``name``; itself in light mode."""
    if in_light_mode() or isinstance(value, Expr):
        return value
    return Variable(value, name)


def prod(xs: Any) -> Any:
    """The product of a tuple of integers or of an expression for one."""
    return math.prod(xs) if in_light_mode() else Call(_prod, (xs,))


_prod = Variable(math.prod, "prod")


def same_types(*arrays: ArrayLike) -> bool:
    """Whether all are NumPy arrays, or all arrays on CUDA devices."""
    return any(
        all(isinstance(array, kind) for array in arrays)
        for kind in backend.get_array_types()
    )
