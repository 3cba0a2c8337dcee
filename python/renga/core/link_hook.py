"""LinkHook: callbacks before and after every call of a link."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any, TypeVar

_Self = TypeVar("_Self", bound="LinkHook")


@dataclasses.dataclass(eq=False, repr=False)
class _ForwardPreprocessCallbackArgs:
    """The argument of a hook before a link runs."""

    link: Any
    forward_name: str
    args: tuple[object, ...]
    kwargs: dict[str, object]

    def __repr__(self) -> str:
        fields = " ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"<{type(self).__name__} {fields}>"


@dataclasses.dataclass(eq=False, repr=False)
class _ForwardPostprocessCallbackArgs(_ForwardPreprocessCallbackArgs):
    """The argument of a hook after a link has run."""

    out: Any


class LinkHook:
    """Runs around the calls of links: of one (``Link.add_hook``), or of all of them
    that this thread makes within a ``with`` statement.
    """

    name = "LinkHook"

    def __enter__(self: _Self) -> _Self:
        hooks = _thread_hooks.by_name
        if self.name in hooks:
            raise KeyError(
                f"LinkHook: expected a new name, got {self.name!r}: it already exists"
            )
        hooks[self.name] = self
        self.added(None)
        return self

    def __exit__(self, *_: Any) -> None:
        _thread_hooks.by_name.pop(self.name)
        self.deleted(None)

    def added(self, link: Any) -> None:
        """Called when the hook is added to ``link``, or to all links if None."""

    def deleted(self, link: Any) -> None:
        """Called when the hook is removed from ``link``, or from all links if None."""

    def forward_preprocess(self, args: _ForwardPreprocessCallbackArgs) -> None:
        """Called before ``args.link`` runs."""

    def forward_postprocess(self, args: _ForwardPostprocessCallbackArgs) -> None:
        """Called after ``args.link`` ran."""


class _ThreadHooks(threading.local):
    def __init__(self) -> None:
        self.by_name: dict[str, LinkHook] = {}


_thread_hooks = _ThreadHooks()


def thread_hooks() -> dict[str, LinkHook]:
    """The hooks on all links that this thread calls, by name."""
    return _thread_hooks.by_name
