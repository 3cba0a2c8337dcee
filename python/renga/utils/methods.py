"""Detection of overridden methods."""

from __future__ import annotations

from typing import Any


def is_method_of(owner: Any, cls: type, *names: str) -> bool:
    """Whether ``owner`` overrides none of these methods of ``cls``, also not itself."""
    methods = (getattr(getattr(owner, name), "__func__", None) for name in names)
    return all(f is getattr(cls, name) for f, name in zip(methods, names))
