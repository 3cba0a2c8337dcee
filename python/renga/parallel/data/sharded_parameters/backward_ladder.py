"""Calls before the operations of each rank of a graph, in every backward pass."""

from __future__ import annotations

import weakref
from typing import Any, Callable

import numpy

from renga import _core
from renga.core.function_node import FunctionNode
from renga.core.variable import Variable


class BackwardLadder:
    """Functions of all ranks of the graph, each of which depends on the one below.

    A backward pass computes operations in the order of their ranks, the highest first.
    The ladder is an extra root of this thread's passes: its function of rank r runs
    after all operations of higher ranks, and before those of lower ones.

    Args:
        reach: called with r in the backward pass.
    """

    def __init__(self, reach: Callable[[int], None]) -> None:
        self._reach = reach
        self._leaf = Variable(_token())
        self._steps: list[Variable] = []  # outputs, by rank

    def extend(self, rank: int) -> None:
        """Has the next pass begin with a function of ``rank`` at least."""
        while len(self._steps) <= rank:
            below = self._steps[-1] if self._steps else self._leaf
            step = _LadderStep(len(self._steps), self._run)
            (output,) = _core.record_python(step, [below], [_token()])
            self._steps.append(output)
        self._take_part()

    def _run(self, rank: int) -> None:
        if rank == len(self._steps) - 1:
            self._leaf.cleargrad()
            self._take_part()  # in the pass after this one
        self._reach(rank)

    def _take_part(self) -> None:
        _core.set_extra_root("ladder", self._steps[-1], self._leaf)


class _LadderStep(FunctionNode):
    """One function of a ladder."""

    def __init__(self, rank: int, run: Callable[[int], None]) -> None:
        self._rank = rank
        self._run = weakref.WeakMethod(run)

    def backward_accumulate(
        self,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Any, ...],
        grad_inputs: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        run = self._run()
        if run is not None:
            run(self._rank)
        return grad_outputs


def _token() -> numpy.ndarray:
    return numpy.empty(0, numpy.float32)
