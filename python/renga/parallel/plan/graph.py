"""The graph of a network: which operation reads what, and how each can be split."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from renga import _core
from renga._core.planning import Input, InputAxis

# Along which kinds of axes outputs can be split.
SAMPLE, ATTRIBUTE, PARAMETER, WHOLE = "S", "A", "P", "."


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operation with one output.

    Args:
        name: of the layer.
        kind: what it computes, for costs: ``convolution``, ``linear``, …
        extents: of the output.
        axes: the kind of each axis: sample, attribute, parameter, or not split.
        inputs: the operations that it reads.
        reduction: the extent of the axis whose products are summed; 1 if there is none,
            or none that can be split.
        flops: of the forward pass.
        parameters: their number.
        shared: a name that operations with the same parameters have in common; they are
            split alike, and the first of them counts the parameters.
        detail: what sets its cost apart from other operations of the same shapes.
        itemsize: bytes of an element.
    """

    name: str
    kind: str
    extents: tuple[int, ...]
    axes: str
    inputs: tuple[Input, ...] = ()
    reduction: int = 1
    flops: float = 0.0
    parameters: int = 0
    shared: str | None = None
    detail: str = ""
    itemsize: int = 4

    @property
    def size(self) -> int:
        """Elements of the output."""
        return math.prod(self.extents)

    @property
    def input_size(self) -> int:
        """Elements of all inputs."""
        return sum(math.prod(x.extents) for x in self.inputs)

    @property
    def signature(self) -> str:
        """The same for operations with the same costs."""
        read = "+".join("x".join(map(str, x.extents)) for x in self.inputs)
        shape = "x".join(map(str, self.extents))
        return " ".join(filter(None, [self.kind, self.detail, f"{read}->{shape}"]))

    @property
    def node(self) -> _core.planning.Operation:
        """The operation for the simulator."""
        return _core.planning.Operation(
            list(self.extents),
            self.reduction,
            self.itemsize,
            [kind == PARAMETER for kind in self.axes],
            list(self.inputs),
        )


@dataclasses.dataclass
class Graph:
    """Operations in an order in which each follows those that it reads."""

    name: str
    operations: list[Operation] = dataclasses.field(default_factory=list)

    def add(self, operation: Operation) -> int:
        """Appends an operation and returns its index.

        Parameters that an operation before it has already are not counted again.
        """
        shared = operation.shared
        if shared is not None and any(op.shared == shared for op in self.operations):
            operation = dataclasses.replace(operation, parameters=0)
        self.operations.append(operation)
        return len(self.operations) - 1

    def extents(self, index: int) -> tuple[int, ...]:
        """Of an operation's output."""
        return self.operations[index].extents

    @property
    def parameters(self) -> int:
        """The number of all parameters."""
        return sum(op.parameters for op in self.operations)

    @property
    def flops(self) -> float:
        """Of a forward pass."""
        return sum(op.flops for op in self.operations)

    def groups(self) -> list[list[int]]:
        """Operations that are split alike: those with the same parameters, or one."""
        found: dict[str, list[int]] = {}
        for i, op in enumerate(self.operations):
            found.setdefault(op.shared or f"#{i}", []).append(i)
        return list(found.values())

    def read(self, index: int, axes: Sequence[InputAxis]) -> Input:
        """An input that reads an operation's output; of raw inputs no gradient."""
        has_gradient = self.operations[index].kind != "input"
        return Input(index, list(self.extents(index)), list(axes), has_gradient)


def along(source: int, **window: int) -> InputAxis:
    """Elements at the output's positions along axis ``source``, or windows of them."""
    return InputAxis(source, **window)


def whole() -> InputAxis:
    """All elements."""
    return InputAxis(InputAxis.WHOLE)


def reduced(divide: int = 1) -> InputAxis:
    """The elements whose products are summed, ``divide`` products for each."""
    return InputAxis(InputAxis.REDUCTION, divide=divide)
