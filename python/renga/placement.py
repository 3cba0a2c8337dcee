"""Functions and graphs that a pipeline has to compute as a whole."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from renga import _core

Function = TypeVar("Function", bound=Callable[..., Any])


def require_own_graph(caller: str) -> None:
    """Raises RuntimeError in a program of which other ranks compute parts."""
    placement = _core.call_placement()
    if hasattr(placement, "require_own_graph"):  # a stage of a pipeline
        placement.require_own_graph(caller)


def reads_elements(function: Function) -> Function:
    """Declares that a function reads the elements of its Variables in Python.

    Where they are on another stage of a pipeline, there are none: then the function is
    computed there, and only the shapes of its outputs here.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        placement = _core.call_placement()
        if placement is None:
            return function(*args, **kwargs)
        return placement.call(function, args, kwargs)

    return call  # type: ignore[return-value]
