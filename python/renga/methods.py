"""Whether an object's methods are those of a class."""

from __future__ import annotations

from typing import Any


def is_method_of(owner: Any, cls: type, *names: str) -> bool:
    """Whether nobody has put others in the place of these methods of a class."""
    methods = (getattr(getattr(owner, name), "__func__", None) for name in names)
    return all(f is getattr(cls, name) for f, name in zip(methods, names))
