"""Decorators of static graphs, which have no effect.

Recording the graph in every iteration costs less than a microsecond for each function,
in C++.
"""

from __future__ import annotations

from typing import Any


def static_graph(*args: Any, **kwargs: Any) -> Any:
    """Decorator of a method with a static graph: returns the method unchanged.

    Options, such as ``verbosity_level``, are accepted.
    """
    if len(args) == 1 and callable(args[0]) and not kwargs:
        return args[0]
    return lambda method: method


def static_code(*dec_args: Any, **dec_kwargs: Any) -> Any:
    """Decorator of code rerun by static graphs: returns the code unchanged."""
    return static_graph(*dec_args, **dec_kwargs)
