"""The operations that the core lists, with their traits."""

from __future__ import annotations

from renga import _core
from renga.core.types import CalledFunction


def operation_of(function: object) -> _core.Operation | None:
    """The list entry of a call that a hook sees, or of a graph node.

    None for Python functions, and for functions that the core does not list, such as
    gradients.
    """
    if not isinstance(function, (_core.Call, _core.Node)):
        return None
    return _BY_LABEL.get(function.label) or _BY_LABEL.get(_normalized(function.label))


def operation_name(function: CalledFunction) -> str:
    """The same name forward and backward, where the core's labels differ."""
    operation = operation_of(function)
    return function.label if operation is None else operation.name


def _normalized(label: str) -> str:
    return label.lower().replace("_", "")


_BY_LABEL = {
    label: operation
    for operation in _core.ops.entries
    for label in (operation.label, _normalized(operation.name))
}
