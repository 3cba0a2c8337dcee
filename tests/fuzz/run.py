"""One call with arrays of given layouts: what it gives, its gradients, its errors."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy

import renga
from renga import _core

from .draw import Built, Operand, tree_map
from .layouts import Layout, arrange, plain


@dataclasses.dataclass
class Given:
    """An operand as the call got it.

    ``wrapped`` arrays go in as Variables; ``rounded`` ones hold bfloat16 inside.
    """

    operand: Operand
    layout: Layout
    wrapped: bool
    rounded: bool = False
    array: Any = None
    memory: Any = None
    before: bytes = b""
    variable: Any = None

    def make(self) -> Any:
        value = self.operand.value
        if isinstance(value, numpy.ndarray) and value.dtype.kind not in "OV":
            self.array, self.memory = arrange(value, self.layout)
            self.before = self.memory.tobytes()
        else:
            self.array = value
        if not self.wrapped:
            return self.array
        self.variable = renga.Variable(self.array)
        if not self.rounded:
            return self.variable
        with renga.using_config("dtype", renga.mixed_bfloat16):
            return _core.as_activation(self.variable)

    def changed(self) -> bool:
        """Whether an input was written to."""
        if self.memory is None or self.operand.role == "target":
            return False
        return self.memory.tobytes() != self.before

    def outside_changed(self) -> bool:
        """Of a target: whether something beside its elements was written."""
        if self.memory is None or self.operand.role != "target":
            return False
        native = self.array.astype(self.array.dtype.newbyteorder("="))
        _, memory = arrange(native, self.layout)
        return memory.tobytes() != self.memory.tobytes()


@dataclasses.dataclass
class Result:
    outputs: list[Any] = dataclasses.field(default_factory=list)  # then the targets
    returned: int = 0
    gradients: list[Any] | None = None
    error: Exception | None = None
    backward_error: Exception | None = None
    faults: list[str] = dataclasses.field(default_factory=list)


def flat(ys: Any) -> list[Any]:
    if isinstance(ys, (list, tuple)):
        return [part for y in ys for part in flat(y)]
    return [ys]


def array_of(y: Any) -> Any:
    y = getattr(y, "array", y)
    return y if y is None or isinstance(y, numpy.ndarray) else numpy.asarray(y)


def materialize(tree: Any, given: dict[int, Given]) -> Any:
    def leaf(x: Any) -> Any:
        if isinstance(x, Operand):
            return given[id(x)].make()
        if isinstance(x, Built):
            return x.make(*x.parts)
        return x

    return tree_map(leaf, tree)


def copies(tree: Any) -> dict[int, Given]:
    """Every operand in a native copy, those of role "x" as Variables."""
    found: dict[int, Given] = {}

    def leaf(x: Any) -> None:
        if isinstance(x, Operand):
            found[id(x)] = Given(x, plain(x), x.role == "x")

    tree_map(leaf, tree)
    return found


def run(
    function: Any,
    arguments: tuple[Any, Any],
    given: dict[int, Given],
    seed: int,
    upstream: Any = None,
) -> Result:
    """Calls, then differentiates with the gradients that ``upstream(y)`` gives."""
    result = Result()
    numpy.random.seed(seed)
    try:
        args, kwargs = materialize(arguments, given)
        ys = flat(function(*args, **kwargs))
        result.outputs = [array_of(y) for y in ys]
        result.returned = len(ys)
    except Exception as error:
        result.error = error
        check_memory(result, given, "the call")
        return result
    check_memory(result, given, "the call")
    for g in given.values():
        if g.operand.role == "target" and g.memory is not None:
            result.outputs.append(g.array)
    if upstream is not None:
        differentiate(result, ys, given, upstream)
        check_memory(result, given, "the gradient")
    return result


def check_memory(result: Result, given: dict[int, Given], when: str) -> None:
    for g in given.values():
        if g.changed():
            result.faults.append(f"{when} changed an input")
        if g.outside_changed():
            result.faults.append(f"{when} wrote outside its target")


def differentiate(
    result: Result, ys: list[Any], given: dict[int, Given], upstream: Any
) -> None:
    numbered = [
        (i, y)
        for i, y in enumerate(ys)
        if isinstance(y, renga.Variable) and y.requires_grad and y.dtype.kind == "f"
    ]
    ys = [y for _, y in numbered]
    xs = [g.variable for g in given.values() if g.variable is not None]
    if not ys or not xs:
        return
    try:
        gys = [upstream(i, y) for i, y in numbered]
        before = [gy.array.tobytes() for gy in gys]
        gxs = renga.grad(ys, xs, gys)
        if [gy.array.tobytes() for gy in gys] != before:
            result.faults.append("the gradient changed what came from above")
    except Exception as error:
        result.backward_error = error
        return
    result.gradients = []
    by_place = iter(gxs)
    for g in given.values():
        gx = next(by_place) if g.variable is not None else None
        result.gradients.append(None if gx is None else gx.array)
        if gx is None:
            continue
        if gx.shape != g.variable.shape or gx.dtype != g.variable.dtype:
            result.faults.append(
                f"gradient {gx.dtype}{gx.shape} of {g.variable.dtype}{g.variable.shape}"
            )
