"""``chainer._backprop_utils``: one step of a backward pass, by lists of gradients."""

from __future__ import annotations

from typing import Any

from renga._core import Variable
from renga.core.function_node import FunctionNode
from renga.core.gradients import sum_of_known


class GradTable:
    """The gradients of nodes, as lists of summands."""

    def __init__(self, accumulate_grad_inputs: bool = False) -> None:
        self.grads: dict[Any, list[Any]] = {}
        self._load_if_new = accumulate_grad_inputs

    def __setitem__(self, node: Any, grad: Any) -> None:
        self.grads[node] = [] if grad is None else [grad]

    def get_as_list(self, node: Any) -> list[Variable]:
        """The summands of a node; those of a new leaf begin with its gradient."""
        if node not in self.grads:
            own = node.grad_var if self._load_if_new and node.creator is None else None
            self[node] = own
        return self.grads[node]

    def accumulate(self, node: object, grad: Variable | None) -> None:
        """Adds a gradient, unless it is None."""
        if grad is not None:
            self.get_as_list(node).append(grad)

    def pop(self, node: object) -> Variable | None:
        """The sum of a node's gradients, None without one; they are dropped."""
        return _reduce(self.grads.pop(node, []))


def _reduce(grad_list: list[Any]) -> Any:
    """The sum of gradients, which alone stays in the list; None for an empty list."""
    if not grad_list:
        return None
    total = None
    for grad in grad_list:
        total = sum_of_known(total, grad)
    grad_list[:] = [total]
    return total


def backprop_step(
    func: Any,
    target_input_indexes: tuple[int, ...],
    grad_outputs: tuple[Variable, ...],
    grad_inputs: dict[Any, list[Any]],
    is_debug: bool,
) -> None:
    """Adds the gradients of a function's inputs to their lists.

    A function that overrides ``backward_accumulate`` gets the sums so far. Lists are
    summed, unless the function has ``lazy_grad_sum``.
    """
    lists = [grad_inputs[func.inputs[i]] for i in target_input_indexes]
    if _accumulates(func):
        nodes = [func.inputs[i] for i in target_input_indexes]
        # An input that comes twice has its sum at its first place.
        before = [
            _reduce(part) if node not in nodes[:i] else None
            for i, (node, part) in enumerate(zip(nodes, lists))
        ]
        gxs = func.backward_accumulate(
            target_input_indexes, grad_outputs, tuple(before)
        )
        for part in lists:
            part.clear()
    else:
        gxs = func.backward(target_input_indexes, grad_outputs)
        if len(gxs) == len(func.inputs) > len(lists):
            gxs = tuple(gxs[i] for i in target_input_indexes)
    for part, gx in zip(lists, gxs):
        if gx is not None:
            part.append(gx)
            if not getattr(func, "lazy_grad_sum", False):
                _reduce(part)


def _accumulates(func: Any) -> bool:
    own = getattr(type(func), "backward_accumulate", None)
    return own is not FunctionNode.backward_accumulate
