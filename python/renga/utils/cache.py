"""Properties that are computed once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from renga import _core


class cached_property:
    """A property computed once with ``config.enable_backprop``, and once without.

    Raises:
        AttributeError: it is assigned to.
    """

    def __init__(self, func: Callable[..., object]) -> None:
        functools.update_wrapper(self, func)  # type: ignore[arg-type]
        self.func = func

    def __get__(self, obj: Any, cls: type) -> Any:
        if obj is None:
            return self
        cache = obj.__dict__.setdefault(self.func.__name__, {})
        key = _core.backprop_enabled()
        if key not in cache:
            cache[key] = self.func(obj)
        return cache[key]

    def __set__(self, obj: Any, value: Any) -> None:
        # Being a data descriptor, it is asked before obj.__dict__.
        raise AttributeError(f"attribute {self.func.__name__!r} is read-only")
