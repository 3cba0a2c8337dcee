"""Leaves beside a pipeline's model, whose gradients the stages compute in parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.communicators import Communicator
from renga.core.kept_gradients import add_to_gradient
from renga.core.types import Array
from renga.core.variable import Variable


class OuterLeaves:
    """Sums over ranks the gradients of leaves that are no parameters of the model.

    They are Variables that a program reads through a closure or is given as arguments,
    and parameters of other models. Every rank runs the calls of the program, those of
    other stages by shapes, so that all note the same leaves in the same order.

    Args:
        comm: the ranks of the pipeline.
        flushes: whether the schedule completes a batch before the next one starts.
    """

    def __init__(self, comm: Communicator, flushes: bool) -> None:
        self._comm = comm
        self._flushes = flushes
        # By nodes, the gradients before the batch. Variables themselves are not kept: a
        # leaf that the program does not have after the batch needs no gradient.
        self._before: dict[_core.VariableNode, Variable | None] = {}
        # The operands whose leaves have been noted.
        self._seen: set[_core.VariableNode] = set()

    def note(self, operands: Sequence[Variable]) -> None:
        """Notes the leaves that the operands of a stage's call were computed of."""
        for x in operands:
            if x.stage >= 0 or not x.requires_grad or x.node in self._seen:
                continue
            if _core.backprop_enabled():
                self._seen.add(x.node)
                for node in _core.leaves_before([x]):
                    if node.stage < 0 and node not in self._before:
                        self._note_leaf(node)

    def _note_leaf(self, node: _core.VariableNode) -> None:
        self._before[node] = None
        if (leaf := _held(node)) is not None:
            self._before[node], leaf.grad_var = leaf.grad_var, None

    def end_forward(self) -> None:
        """Refuses leaves where no rank would know when their gradients are complete.

        Raises:
            ValueError: the schedule does not flush, and the program has a leaf.
        """
        if self._flushes:
            return
        held = [leaf for leaf in map(_held, self._before) if leaf is not None]
        self.restore()
        if held:
            raise ValueError(
                "Pipeline: expected a schedule that flushes for the gradient of a "
                f"Variable beside the model, got {held[0]!r}: read it in "
                "no_backprop_mode() if nobody needs its gradient"
            )

    def restore(self) -> None:
        """Gives leaves their gradients of before the batch, and forgets them."""
        for node, before in self._before.items():
            if (leaf := _held(node)) is not None:
                leaf.grad_var = before
        self._before, self._seen = {}, set()

    def add_up(self) -> None:
        """Adds the gradients of all stages to those of before the batch.

        Every rank calls it, after its backward passes.
        """
        if not self._before:
            return
        leaves = [_held(node) for node in self._before]
        own = [None if leaf is None else leaf.grad is not None for leaf in leaves]
        summed: defaultdict[Any, list[Variable]] = defaultdict(list)
        for leaf, flags in zip(leaves, zip(*self._comm.allgather_obj(own))):
            if leaf is not None and None not in flags and any(flags):
                summed[leaf.dtype].append(leaf)
        totals = [
            self._comm.all_reduce([_gradient(leaf) for leaf in group])
            for group in summed.values()
        ]
        self.restore()
        for group, arrays in zip(summed.values(), totals):
            for leaf, total in zip(group, arrays):
                add_to_gradient(leaf, total)


def _held(node: _core.VariableNode) -> Variable | None:
    """The leaf of a node if the program has it; a graph may have it alone."""
    return node.get_variable() if node.is_in_python else None


def _gradient(leaf: Variable) -> Array:
    return leaf.xp.zeros_like(leaf.array) if leaf.grad is None else leaf.grad
