"""Whether a loss is a sum over the samples of a micro-batch, found in its graph."""

from __future__ import annotations

from typing import Any

from renga._core import Locality
from renga.operations import operation_of
from renga.parameter import Parameter
from renga.variable import Variable

_REDUCTIONS = ("sum", "mean", "average")
_UNCHANGED = {"negative", "reshape", "identity", "cast"}


def is_sum_over_samples(loss: Variable, samples: int, axis: int) -> bool:
    """Whether a term of a loss adds up all elements of an array with samples.

    Terms that are multiplied or divided by something are means, maybe.

    Args:
        loss: with its graph.
        samples: their number.
        axis: of the samples.
    """
    pending = [loss.node]
    while pending:
        node = pending.pop()
        operation = operation_of(node.creator_node)
        if operation is None:
            continue
        inputs = node.creator_node.inputs
        if operation.name == "sum":
            if _has_samples(inputs[0], samples, axis):
                return True
        elif operation.name == "add" or operation.name in _UNCHANGED:
            pending += inputs
    return False


def _has_samples(node: Any, samples: int, axis: int) -> bool:
    """Whether an array is computed, element by element, from one with samples."""
    if len(node.shape) <= axis or node.shape[axis] != samples or samples == 1:
        return False
    pending = [node]
    while pending:
        node = pending.pop()
        function = node.creator_node
        if function is None:
            variable = node.get_variable_or_none()
            if variable is not None and not isinstance(variable, Parameter):
                return True
            continue
        operation = operation_of(function)
        if operation is not None and operation.locality == Locality.pointwise:
            pending += function.inputs
        elif operation is None or operation.name not in _REDUCTIONS:
            return True
        elif tuple(function.inputs[0].shape).count(samples) == 1:
            return True  # over other axes
    return False
