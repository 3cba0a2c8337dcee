"""Registry of the writers of operations as ONNX nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

# Called with the graph, the results, and the operation's arguments; adds nodes and
# returns the name of its output, those of several, or None if ONNX has no counterpart.
Writer = Callable[..., "str | Sequence[str] | None"]

OPERATORS: dict[str, Writer] = {}  # by the names of operations


# These write functions that are written in Python, by their classes. They are called
# with the graph, the results, the call and its operands.
FUNCTIONS: dict[type, Writer] = {}


def writes_function(kind: type) -> Callable[[Writer], Writer]:
    """Decorator that registers a writer of a class of FunctionNodes."""

    def register(writer: Any) -> Writer:
        FUNCTIONS[kind] = writer
        return writer

    return register


def writes(*names: str) -> Callable[[Writer], Writer]:
    """Decorator that registers a writer of the operations with these names."""

    def register(writer: Any) -> Writer:
        OPERATORS.update(dict.fromkeys(names, writer))
        return writer

    return register
