"""Functions that a caller can override: sharded images need other implementations."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class _Thread(threading.local):
    overrides: Mapping[str, Callable[..., Any]] = {}


_thread = _Thread()


def overridable(function: Function) -> Function:
    """Makes ``function`` one that ``overriding`` can replace.

    For functions in which an element of the output depends on several pixels. The
    override is called with the original function, then with the arguments.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        override = _thread.overrides.get(function.__name__)
        if override is None:
            return function(*args, **kwargs)
        return override(function, *args, **kwargs)

    return call  # type: ignore[return-value]


@contextlib.contextmanager
def overriding(overrides: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Context in which functions are overridden by their names, in this thread."""
    before, _thread.overrides = _thread.overrides, overrides
    try:
        yield
    finally:
        _thread.overrides = before
