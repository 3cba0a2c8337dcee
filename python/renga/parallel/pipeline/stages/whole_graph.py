"""The graph of a program of which each stage computes a part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from renga.core.computational_graph import functions_before
from renga.core.variable import Variable


class WholeGraph:
    """What variables were computed of, on this stage and, by shapes, on others.

    The core's graph of a rank ends at the values that it has received. So the parts
    before them, which other variables may have been computed of, are kept here.
    """

    def __init__(self) -> None:
        # Of variables of other stages, by ids: they are kept, so that ids stay theirs.
        self._operands: dict[int, tuple[Variable, Sequence[Variable]]] = {}

    def note(self, results: Iterable[Variable], operands: Sequence[Variable]) -> None:
        """Notes a call of another stage."""
        for y in results:
            if y.requires_grad:
                self._operands[id(y)] = y, operands

    def unchain(self, x: Variable) -> None:
        """Removes what a variable of another stage was computed of."""
        self._operands.pop(id(x), None)

    def unchain_backward(
        self, x: Variable, received: Iterable[tuple[Variable, Variable]]
    ) -> None:
        """Removes the whole graph before a variable.

        Args:
            x: the variable.
            received: variables of other stages, and what stands for them in the core's
                graph.
        """
        originals = {value.node: original for original, value in received}
        pending = [x]
        while pending:
            x = pending.pop()
            if id(x) in self._operands:
                pending += self._operands.pop(id(x))[1]
                continue
            functions = list(functions_before([x.node]))
            nodes = {node for each in functions for node in each.inputs or ()}
            pending += [y for node, y in originals.items() if node in nodes]
            for function in functions:
                function.unchain()
