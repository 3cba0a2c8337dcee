"""Decorators of static graphs, which change nothing here.

A forward pass that is the same every time costs no more when it is defined by running:
the graph is recorded in C++ within a microsecond for each function.
"""

from __future__ import annotations

from typing import Any


def static_graph(*args: Any, **kwargs: Any) -> Any:
    """Decorator of a method whose graph is always the same: the method as it is.

    Options, such as ``verbosity_level``, are accepted.
    """
    if len(args) == 1 and callable(args[0]) and not kwargs:
        return args[0]
    return lambda method: method


def static_code(*dec_args: Any, **dec_kwargs: Any) -> Any:
    """Decorator of code that a static graph would run anew: the code as it is."""
    return static_graph(*dec_args, **dec_kwargs)
