"""Printable expressions over array types."""

from __future__ import annotations

import operator
from typing import Any, Callable

# How tightly an operation binds when printed, as in Python's own grammar.
COMPARISON, OR, XOR, AND, SHIFT, SUM, PRODUCT, SIGN, POWER, ATOM = range(-1, 9)


def evaluate(exp: object) -> Any:
    """The value of an expression; anything else is its own value."""
    return exp.eval() if isinstance(exp, Expr) else exp


def evaluate_parts(exp: object) -> Any:
    """The value of an expression, or a list or tuple with the values of its parts."""
    if isinstance(exp, (list, tuple)) and type(exp) in (list, tuple):
        return type(exp)(map(evaluate_parts, exp))
    return evaluate(exp)


def _repr(value: Any) -> str:
    """The text of an expression, or of a list or tuple of them."""
    if type(value) is tuple:
        comma = "," if len(value) == 1 else ""
        return f"({', '.join(map(_repr, value))}{comma})"
    if type(value) is list:
        return f"[{', '.join(map(_repr, value))}]"
    return str(value) if isinstance(value, Expr) else repr(value)


class Expr:
    """A value to be computed later, whose operators make longer expressions."""

    def __init__(self, priority: int) -> None:
        self.priority = priority

    def eval(self) -> Any:
        """Computes the value."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Expr:
        if name.startswith("__"):  # protocols such as copying read these
            raise AttributeError(name)
        return GetAttr(self, name)

    def __getitem__(self, key: Any) -> Expr:
        return GetItem(self, key)

    def __call__(self, *args: object) -> Expr:
        return Call(self, args)

    def __bool__(self) -> bool:
        raise RuntimeError(
            f"type_check: expected eval({self}) or expect({self}), got its truth value"
        )

    # Python's iteration by index would not end.
    __iter__ = None
    __hash__ = None  # type: ignore[assignment]


class Atom(Expr):
    """An expression that never needs parentheses."""

    def __init__(self) -> None:
        super().__init__(ATOM)


class Constant(Atom):
    """A value that prints as itself."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value

    def __str__(self) -> str:
        return str(self.value)

    def eval(self) -> object:
        return self.value


class Variable(Atom):
    """A value that prints as its name."""

    def __init__(self, value: object, name: str) -> None:
        super().__init__()
        self.value = value
        self.name = name

    def __str__(self) -> str:
        return self.name

    def eval(self) -> object:
        return self.value


class GetAttr(Atom):
    """``obj.name``."""

    def __init__(self, obj: Expr, name: str) -> None:
        super().__init__()
        self.obj = obj
        self.name = name

    def __str__(self) -> str:
        name = evaluate(self.name)
        if not isinstance(name, str):
            return f"getattr({self.obj}, {name!r})"
        return f"{_parenthesized(self.obj, ATOM)}.{name}"

    def eval(self) -> object:
        return getattr(self.obj.eval(), evaluate(self.name))


class GetItem(Atom):
    """``obj[key]``."""

    def __init__(self, obj: Expr, key: object) -> None:
        super().__init__()
        self.obj = obj
        self.key = key

    def __str__(self) -> str:
        keys = self.key if isinstance(self.key, tuple) else (self.key,)
        return f"{_parenthesized(self.obj, ATOM)}[{', '.join(map(_key_text, keys))}]"

    def eval(self) -> object:
        key = self.key
        if isinstance(key, tuple):
            return self.obj.eval()[tuple(map(evaluate, key))]
        return self.obj.eval()[evaluate(key)]


class Call(Atom):
    """``obj(*args)``."""

    def __init__(self, obj: Expr, args: tuple) -> None:
        super().__init__()
        self.obj = obj
        self.args = args

    def __str__(self) -> str:
        return f"{_parenthesized(self.obj, ATOM)}({', '.join(map(str, self.args))})"

    def eval(self) -> object:
        return self.obj.eval()(*map(evaluate, self.args))


class UnaryOperator(Expr):
    """``exp term``, computed by ``func``."""

    def __init__(
        self, priority: int, term: object, exp: str, func: Callable[..., object]
    ) -> None:
        super().__init__(priority)
        self.term = term
        self.exp = exp
        self.func = func

    def __str__(self) -> str:
        return self.exp + _parenthesized(self.term, self.priority)

    def eval(self) -> object:
        return self.func(evaluate(self.term))


class BinaryOperator(Expr):
    """``lhs exp rhs``, computed by ``func``."""

    def __init__(
        self,
        priority: int,
        lhs: object,
        rhs: object,
        exp: str,
        func: Callable[..., object],
        right_associative: bool = False,
    ) -> None:
        super().__init__(priority)
        self.lhs = lhs
        self.rhs = rhs
        self.exp = exp
        self.func = func
        self.right_associative = right_associative

    def __str__(self) -> str:
        left, right = self.priority, self.priority
        if self.right_associative:
            left += 1
        else:
            right += 1
        return (
            f"{_parenthesized(self.lhs, left)} {self.exp} "
            f"{_parenthesized(self.rhs, right)}"
        )

    def eval(self) -> object:
        return self.func(evaluate_parts(self.lhs), evaluate_parts(self.rhs))


def _parenthesized(term: Any, priority: int) -> str:
    if isinstance(term, Expr) and term.priority < priority:
        return f"({term})"
    return _repr(term)


def _key_text(key: Any) -> str:
    if key is Ellipsis:
        return "..."
    if not isinstance(key, slice):
        key = key.value if isinstance(key, Constant) else key
        return str(key) if isinstance(key, Expr) else repr(key)
    parts = [key.start, key.stop] + ([] if key.step is None else [key.step])
    return ":".join("" if part is None else str(part) for part in parts)


def _attach_binary(
    name: str, priority: int, exp: str, func: Callable, right_associative: bool = False
) -> None:
    def forward(self: Expr, other: Any) -> Expr:
        return BinaryOperator(priority, self, other, exp, func, right_associative)

    def reflected(self: Expr, other: Any) -> Expr:
        return BinaryOperator(priority, other, self, exp, func, right_associative)

    setattr(Expr, f"__{name}__", forward)
    setattr(Expr, f"__r{name}__", reflected)


def _attach_unary(name: str, exp: str) -> None:
    func = getattr(operator, name)

    def apply(self: Expr) -> Expr:
        return UnaryOperator(SIGN, self, exp, func)

    setattr(Expr, f"__{name}__", apply)


_attach_binary("add", SUM, "+", operator.add)
_attach_binary("sub", SUM, "-", operator.sub)
_attach_binary("mul", PRODUCT, "*", operator.mul)
_attach_binary("truediv", PRODUCT, "/", operator.truediv)
_attach_binary("floordiv", PRODUCT, "//", operator.floordiv)
_attach_binary("mod", PRODUCT, "%", operator.mod)
_attach_binary("pow", POWER, "**", operator.pow, right_associative=True)
_attach_binary("lshift", SHIFT, "<<", operator.lshift)
_attach_binary("rshift", SHIFT, ">>", operator.rshift)
_attach_binary("and", AND, "&", operator.and_)
_attach_binary("xor", XOR, "^", operator.xor)
_attach_binary("or", OR, "|", operator.or_)
_attach_unary("neg", "-")
_attach_unary("pos", "+")
_attach_unary("invert", "~")
