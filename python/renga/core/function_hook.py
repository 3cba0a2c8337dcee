"""Hooks called around every function, forward and backward."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

from renga import _core
from renga.core.types import Array, CalledFunction

_Self = TypeVar("_Self", bound="FunctionHook")

Arrays = tuple[Array, ...]


class FunctionHook:
    """Called around functions: all in a ``with`` block, or those it is added to.

    Override what is needed.
    """

    name = "FunctionHook"

    def __enter__(self: _Self) -> _Self:
        hooks = get_function_hooks()
        if self.name in hooks:
            raise KeyError(f"FunctionHook: expected a new name, got {self.name!r}")
        hooks[self.name] = self
        _core.set_function_hooks(hooks)
        self.added(None)
        return self

    def __exit__(self, *args: Any) -> None:
        hooks = get_function_hooks()
        del hooks[self.name]
        if not hooks:
            _core.set_function_hooks(None)
        self.deleted(None)

    def added(self, function: CalledFunction | None) -> None:
        """Called when it is added to a function, or to all (None)."""

    def deleted(self, function: CalledFunction | None) -> None:
        """Called when it is removed from a function, or from all (None)."""

    def forward_preprocess(self, function: CalledFunction, in_data: Arrays) -> None:
        """Called before a function computes its outputs."""

    def forward_postprocess(self, function: CalledFunction, in_data: Arrays) -> None:
        """Called after a function has computed its outputs."""

    def backward_preprocess(
        self, function: CalledFunction, in_data: Arrays, out_grad: Arrays
    ) -> None:
        """Called before a function computes its gradients."""

    def backward_postprocess(
        self, function: CalledFunction, in_data: Arrays, out_grad: Arrays
    ) -> None:
        """Called after a function has computed its gradients."""


class _Hooks(threading.local):
    def __init__(self) -> None:
        self.by_name: dict[str, FunctionHook] = {}


_hooks = _Hooks()


def get_function_hooks() -> dict[str, FunctionHook]:
    """This thread's hooks of all functions, by name."""
    return _hooks.by_name
