"""Methods that subclasses must not override, and whether they do."""

from __future__ import annotations

import warnings
from typing import Any


def final(*args: object, **kwargs: object) -> Any:
    """Decorator of methods that subclasses must not override, or should not.

    ``action`` is a Warning to issue or an exception (by default TypeError) to raise.
    The class must derive from ``enable_final()``.
    """
    action = kwargs.pop("action", TypeError)
    if kwargs or len(args) > 1:
        raise TypeError("final: expected a method, or action=… alone")

    def mark(method: Any) -> Any:
        method.__final_action__ = action
        return method

    return mark(*args) if args else mark


class _Final(type):
    """Checks that a new class overrides no final methods of its bases."""

    def __new__(mcs, name: str, bases: Any, members: Any, **options: Any) -> Any:
        for member in members:
            for base in bases:
                action = getattr(getattr(base, member, None), "__final_action__", None)
                if action is not None:
                    _act(action, member)
        return super().__new__(mcs, name, bases, members, **options)


def _act(action: Any, member: str) -> None:
    if issubclass(action, Warning):
        warnings.warn(f"Overriding method {member!r}.", action, stacklevel=4)
    else:
        raise action(f"method {member!r} is final.")


def enable_final(base: object = (), meta_base: object = ()) -> Any:
    """A base class that checks ``final`` methods, derived from ``base``."""
    bases = base if isinstance(base, (tuple, list)) else (base,)
    metas = meta_base if isinstance(meta_base, (tuple, list)) else (meta_base,)
    meta = type("_Final", (_Final, *metas), {}) if metas else _Final
    return meta("_EnableFinal", tuple(bases), {})


def is_method_of(owner: object, cls: type, *names: str) -> bool:
    """Whether ``owner`` overrides none of these methods of ``cls``, also not itself."""
    kind, own = type(owner), vars(owner)
    for name in names:
        if name in own or getattr(kind, name, None) is not getattr(cls, name):
            return False
    return True
