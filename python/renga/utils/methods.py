"""Detection of overridden methods."""

from __future__ import annotations

from typing import Any


def is_method_of(owner: Any, cls: type, *names: str) -> bool:
    """Whether ``owner`` overrides none of these methods of ``cls``, also not itself."""
    kind, own = type(owner), vars(owner)
    for name in names:
        if name in own or getattr(kind, name, None) is not getattr(cls, name):
            return False
    return True
