"""A recorded program: the calls of one run of a model, between numbered values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from renga import _core
from renga.core.backend import get_array_types
from renga.profiling.operation_cost import OperationCost, forward_flops, gradients_cost
from renga.profiling.operation_table import rows_of, table_of
from renga.utils.containers import leaves


@dataclass(frozen=True, eq=False)
class Value:
    """An array of a program; that of a parameter which links share is one value.

    Attributes:
        number: in the order of first use; -1 if it has a name.
        kind: ``input``, ``parameter``, ``constant`` or ``result``.
        shape: of the array.
        dtype: as NumPy has it.
        dtype_name: as the core has it, where an array may be of bfloat16.
        nbytes: of all elements.
        requires_grad: whether a backward pass would find its gradient.
        name: of a parameter, its path in the model.
        variable: the Variable; None for results, which are not kept.
    """

    number: int
    kind: str
    shape: tuple[int, ...]
    dtype: numpy.dtype[Any]
    dtype_name: str
    nbytes: int
    requires_grad: bool
    name: str = ""
    variable: Any = field(default=None, repr=False)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def is_inner(self) -> bool:
        """Whether backward passes go through it: it is a result with a gradient."""
        return self.kind == "result" and self.requires_grad

    @property
    def description(self) -> str:
        """Its name or number, dtype and shape."""
        return f"{self} {self.type}"

    @property
    def type(self) -> str:
        """Its dtype and shape."""
        return f"{self.dtype_name}{list(self.shape)}"

    def __str__(self) -> str:
        return self.name or f"%{self.number}"


@dataclass(eq=False)
class Call:
    """A call of an operation, or of a FunctionNode.

    Attributes:
        operation: its name.
        links: the paths of the links that have called it, the outermost first.
        arguments: with Values in place of Variables, and of arrays that are inputs.
        results: a result may be an operand, as of a reshape to the same shape.
        traits: the list entry of the operation; None if it is not listed.
        node: the FunctionNode; None for an operation of the core.
        settings: the node's own attributes that are numbers, texts, arrays, or tuples
            of these.
        function: the function of ``renga.functions`` that it is a part of, if any.
        source: the file and the line of the caller outside of renga.
        depth: how many FunctionNodes it is inside of, which know nothing of its Values.
        seconds, backward_seconds: of the host, if they were measured.
    """

    operation: str
    links: tuple[str, ...]
    arguments: Sequence[Any]
    results: tuple[Value, ...]
    traits: _core.Operation | None = None
    node: Any = field(default=None, repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict)
    function: str = ""
    source: str = ""
    depth: int = 0
    seconds: float = 0.0
    backward_seconds: float = 0.0

    @property
    def link(self) -> str:
        """The path of the innermost link that has called it; empty outside of links."""
        return self.links[-1] if self.links else ""

    @property
    def operands(self) -> tuple[Value, ...]:
        """The Values among the arguments."""
        return tuple(values_in(self.arguments))

    @property
    def label(self) -> str:
        """Its name in messages and hooks."""
        return (self.traits and self.traits.label) or self.operation

    @property
    def bytes(self) -> int:
        """The bytes that it reads and writes: each operand and each result once."""
        return sum(value.nbytes for value in (*self.operands, *self.results))

    @property
    def flops(self) -> int | None:
        """Its floating-point operations; None where they are not known."""
        if self.traits is None or not self.results:
            return None
        return forward_flops(self.traits, self.arguments, self.results[0])

    def __str__(self) -> str:
        names = () if self.traits is None else self.traits.arguments
        if len(names) == len(self.arguments):
            given = _named(zip(names, self.arguments))
        else:
            given = [*map(_text, self.arguments), *_named(self.settings.items())]
        results = ", ".join(y.description for y in self.results)
        return f"{results} = {self.operation}({', '.join(given)})"


@dataclass(eq=False)
class LinkCall:
    """A call of a link, with Values in place of Variables.

    Attributes:
        link: the link, of the path ``path`` in the model.
        method: ``forward``, or the name of another method that hooks see.
        calls: the indices of its functions' calls in the program.
        seconds: of the host, with the links inside, if they were measured.
    """

    link: Any = field(repr=False)
    path: str
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    calls: range
    seconds: float


@dataclass(eq=False)
class Program:
    """The calls of one run of a model, in order; printed, one a line.

    Programs are equal if they print the same: then they are the same operations with
    the same settings, on values of the same shapes and dtypes.

    Attributes:
        model: the name of the model's class.
        inputs: the arrays and Variables that the model was given.
        calls: of operations and FunctionNodes, in the order in which they ended.
        links: the calls of the model's links, in the order in which they ended.
        outputs: what the model has returned, with Values in place of Variables.
    """

    model: str
    inputs: list[Value] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    links: list[LinkCall] = field(default_factory=list)
    outputs: Any = None

    @property
    def values(self) -> list[Value]:
        """All values, in the order of first use."""
        found = dict.fromkeys(self.inputs)
        for call in self.calls:
            found.update(dict.fromkeys((*call.operands, *call.results)))
        return list(dict.fromkeys([*found, *values_in(self.outputs)]))

    @property
    def parameters(self) -> list[Value]:
        """The parameters that the calls use."""
        return [value for value in self.values if value.kind == "parameter"]

    def __str__(self) -> str:
        lines = [f"program of {self.model}"]
        for value in self.values:
            if value.kind != "result":
                lines.append(f"  {value.description}: {value.kind}")
        for call in self.calls:
            lines.append(f"  {call}{f'  in {call.link}' if call.link else ''}")
        outputs = ", ".join(map(str, values_in(self.outputs)))
        return "\n".join([*lines, f"  return {outputs}"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and str(self) == str(other)

    def table(self) -> str:
        """The profiler's table of the operations of a timed program."""
        runs = []
        for call in self.calls:
            if call.depth == 0:
                cost = OperationCost(call.bytes, call.flops)
                runs.append((call.operation, "forward", call.seconds, cost))
            if call.depth == 0 and call.backward_seconds:
                cost = gradients_cost(call.traits, call.operands, call.results)
                runs.append((call.operation, "backward", call.backward_seconds, cost))
        return table_of(rows_of(runs))

    def dot(self) -> str:
        """A drawing in the DOT language of Graphviz: calls, and the values between."""
        lines = []
        for value in self.values:
            text = f"{value.name or value.kind}\\n{value.type}"
            lines.append(f'"{value}" [label="{text}"];')
        for i, call in enumerate(self.calls):
            text = "\\n".join([call.operation, *call.links[-1:]])
            lines.append(f'c{i} [label="{text}", shape=box];')
            lines += [f'"{x}" -> c{i};' for x in call.operands]
            lines += [f'c{i} -> "{y}";' for y in call.results]
        return "\n".join(["digraph program {", *lines, "}"])


def values_in(tree: object) -> list[Value]:
    """The Values in lists, tuples and dictionaries, in order."""
    return [leaf for leaf in leaves(tree) if isinstance(leaf, Value)]


def _named(arguments: Iterable[tuple[str, Any]]) -> list[str]:
    """Without those left out, and seeds, which differ in each run."""
    return [
        f"{name}={_text(x)}"
        for name, x in arguments
        if x is not None and name != "seed"
    ]


def _text(argument: Any) -> str:
    if isinstance(argument, slice):
        ends = [argument.start, argument.stop, argument.step]
        texts = ["" if end is None else _text(end) for end in ends]
        return ":".join(texts if texts[2] else texts[:2])
    if isinstance(argument, (list, tuple)):
        comma = "," if len(argument) == 1 else ""
        return f"({', '.join(map(_text, argument))}{comma})"
    array_types: tuple[Any, ...] = get_array_types()
    if isinstance(argument, array_types):
        return f"{argument.dtype}{list(argument.shape)}"
    return str(argument)
