"""Registry of the writers of operations as ONNX nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

# Called with the recorder, the results, and the operation's arguments; adds nodes and
# returns the names of its outputs.
Writer = Callable[..., Sequence[str]]

OPERATORS: dict[str, Writer] = {}  # by the names of operations


def writes(*names: str) -> Callable[[Writer], Writer]:
    """Decorator that registers a writer of the operations with these names."""

    def register(writer: Any) -> Writer:
        OPERATORS.update(dict.fromkeys(names, writer))
        return writer

    return register
