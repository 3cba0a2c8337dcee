"""What a row of the catalogue holds, and short ways to write its fields."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

import renga.functions as F
from renga import _core
from tests.fuzz import table as fuzz_table

from . import speed as speed_table

FLOATS_AND_INTS = "efdbhilB"
OPERATIONS = {operation.name: operation for operation in _core.ops.entries}
PUBLIC = {
    name: function
    for name, function in vars(F).items()
    if name[0] != "_" and callable(function)
}


@dataclasses.dataclass
class Case:
    """An operation of the core applied to random arrays.

    Attributes:
        call: Takes (ops, *arrays) and returns a Variable or a list of them. None calls
            the operation of the row with the arrays and ``rest``.
        reference: Takes the same arrays in float64 and returns arrays, computed with
            NumPy and SciPy alone.
        shapes: The shapes of the random arrays.
        low, high: The range of their elements.
        orders: How many times the operation can be differentiated (0, 1, 2).
        dtypes: The dtypes of the arrays, as characters.
        tolerance: Relative error accepted in float32.
        rest: The arguments after the arrays.
    """

    call: Callable[..., Any] | None
    reference: Callable[..., Any] | None
    shapes: tuple[tuple[int, ...], ...]
    low: float = -2.0
    high: float = 2.0
    orders: int = 2
    dtypes: str = "efd"
    tolerance: float = 2e-5
    rest: tuple[Any, ...] = ()


@dataclasses.dataclass
class Function:
    """All that the tests know of one function.

    Operations of the core and public functions of the same name share a row. A field
    that holds several values takes one alone, too.

    Attributes:
        name: The name in ``renga.functions`` or in ``_core.ops``.
        cases: Calls of the core's operation, with references.
        operands: A further call whose operands ``cases`` has as constants.
        takes_arrays: Whether the operation takes constant arrays in ``cases``.
        returns_arrays: Whether it returns arrays of the host instead of Variables.
        node: The operation of the last graph node, where it is another one.
        flops: What counts the operations of the largest case: a formula in NumPy, or
            a number for each case, counted by hand. None counts ``reference``.
        fuzz: Random calls, as the fuzzer makes them.
        signature: Chainer's; None for functions that Chainer does not have.
        edges: Calls with empty batches, single numbers and unusual arrays, which
            ``edge_cases`` explains. Their outcomes in Chainer are recorded.
        nothing: The shapes of results for empty batches, by call, where Chainer fails:
            it divides by N, reshapes with -1, or requires samples. The values are NaN
            for a mean over no elements and 0 for a sum.
        others: Renga's error or shapes, by call, where Chainer's outcome is another one
            always: wrong shapes are InvalidType, even where Chainer stumbles over them,
            and single numbers are arrays like others.
        draws: The function draws numbers, so that only dtypes and shapes are compared.
        half: Whether Chainer has the function in float16.
        gradients: Whether Chainer's gradients are those of its function.
        errors: Wrong calls, their outcomes in Chainer and, after ``|``, renga's where
            they differ, as ``error_cases`` explains.
        onnx: ``exported``, ``no counterpart`` or ``reads values``: why an export of the
            edge cases is refused, if it is.
        speed: Calls that are timed. ``tools/bench-ops --only NAME --record`` records
            their shares of the machine's speed.
    """

    name: str
    cases: list[Case] = dataclasses.field(default_factory=list)
    operands: Case | None = None
    takes_arrays: bool = False
    returns_arrays: bool = False
    node: str | None = None
    flops: Callable[..., Any] | list[int] | None = None
    fuzz: list[fuzz_table.Case] = dataclasses.field(default_factory=list)
    signature: str | None = None
    edges: list[str] = dataclasses.field(default_factory=list)
    nothing: dict[str, Any] = dataclasses.field(default_factory=dict)
    others: dict[str, Any] = dataclasses.field(default_factory=dict)
    draws: bool = False
    half: bool = True
    gradients: bool = True
    errors: list[str] = dataclasses.field(default_factory=list)
    onnx: str | None = None
    speed: list[speed_table.Row] = dataclasses.field(default_factory=list)

    def missing(self) -> list[str]:
        """The names of the fields that the row needs and lacks."""
        needed = {"fuzz"}
        drawn = [case.function for case in self.fuzz]
        lacks = []
        if self.name in OPERATIONS:
            needed.add("cases")
            if getattr(_core.ops, self.name) not in drawn:
                lacks.append('fuzz (a call of="ops")')
        if self.name in PUBLIC:
            needed.add("speed")
            if PUBLIC[self.name] not in drawn:
                lacks.append('fuzz (a call of="F")')
        if self.signature or self.edges or self.errors:
            needed |= {"signature", "edges", "onnx"}
        return lacks + [name for name in sorted(needed) if not getattr(self, name)]


CATALOGUE: dict[str, Function] = {}


def function(
    name: str,
    *,
    cases: Any = (),
    operands: Case | None = None,
    takes_arrays: bool = False,
    fuzz: Any = (),
    edges: Any = (),
    nothing: Any = None,
    errors: Any = (),
    speed: Any = (),
    **fields: Any,
) -> None:
    """Adds a row; ``nothing`` may have the shapes for all of ``edges``."""
    if name in CATALOGUE:
        raise ValueError(f"{name} has two rows")
    edges = listed(edges)
    if isinstance(nothing, list):
        nothing = dict.fromkeys(edges, nothing)
    CATALOGUE[name] = Function(
        name,
        cases=[_named(case, name) for case in listed(cases)],
        operands=operands,
        takes_arrays=takes_arrays or operands is not None,
        fuzz=[case for make in listed(fuzz) for case in make(name)],
        edges=edges,
        nothing=nothing or {},
        errors=listed(errors),
        speed=[make(name) for make in listed(speed)],
        **fields,
    )


def function_name(call: str) -> str | None:
    """The function of an edge case or of a wrong call; None if it is an operator."""
    found = re.match(r"F\.(\w+)", call)
    return found and found[1]


def listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _named(case: Case, name: str) -> Case:
    if case.call is None:
        rest = case.rest
        case.call = lambda o, *xs: getattr(o, name)(*xs, *rest)
    return case


# Cases of the core's operations.
def case(call: Any, reference: Any, *shapes: tuple[int, ...], **options: Any) -> Case:
    return Case(call, reference, shapes, **options)


def unary(reference: Any, **options: Any) -> list[Case]:
    shapes = ((3, 4), (), (0, 3), (2, 3, 5, 7))
    return [case(None, reference, shape, **options) for shape in shapes]


def binary(reference: Any, **options: Any) -> list[Case]:
    shapes = (
        ((3, 4), (3, 4)),
        ((2, 3, 4), (3, 1)),
        ((), (2, 3)),
        ((0, 2), (1, 2)),
    )
    return [case(None, reference, *pair, **options) for pair in shapes]


def reduction(reference: Any, **options: Any) -> list[Case]:
    return [
        case(
            None,
            functools.partial(reference, axis=axis, keepdims=keepdims),
            shape,
            rest=(axis, keepdims),
            **options,
        )
        for shape, axis, keepdims in (
            ((3, 4), None, False),
            ((3, 4), (0,), True),
            ((2, 3, 4, 5), (1, 3), False),
            ((2, 3, 4, 5), (-4, -2), True),
            ((7,), (0,), False),
            ((), None, False),
        )
    ]


def positive(x: Any) -> Any:
    """Indices, 0 and 1, for operands that are drawn as floats."""
    return (x > 0).astype("i")


# Random calls for the fuzzer.
def drawn(draw: Any, oracle: Any = None, of: str = "F", **options: Any) -> Any:
    """A call of the row's function in ``F``, in ``ops``, or in both."""
    return lambda name: [
        fuzz_table.Case(f"{module}.{name}", draw, oracle, **options)
        for module in of.split()
    ]


def drawn_unary(oracle: Any, low: float = -2.0, high: float = 2.0, **options: Any):
    return drawn(
        lambda g: fuzz_table.call(g.x(*g.shape(), low=low, high=high)),
        oracle,
        **options,
    )


def drawn_binary(oracle: Any, low: float = -2.0, high: float = 2.0, **options: Any):
    return drawn(
        lambda g: fuzz_table.call(*g.pair(low=low, high=high)), oracle, **options
    )
