"""Functions of whole images that others stand in for where images are in parts."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class _Thread(threading.local):
    substitutes: Mapping[str, Callable[..., Any]] = {}


_thread = _Thread()


def of_whole_images(function: Function) -> Function:
    """A function that looks beyond single pixels, and for which another may stand in.

    The other gets this one and then its arguments.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        substitute = _thread.substitutes.get(function.__name__)
        if substitute is None:
            return function(*args, **kwargs)
        return substitute(function, *args, **kwargs)

    return call  # type: ignore[return-value]


@contextlib.contextmanager
def substituted(substitutes: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """In this block and thread others stand in for functions, by their names."""
    before, _thread.substitutes = _thread.substitutes, substitutes
    try:
        yield
    finally:
        _thread.substitutes = before
