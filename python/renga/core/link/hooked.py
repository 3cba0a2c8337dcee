"""Hooks around the calls of a link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from renga.core import link_hook

_Self = TypeVar("_Self", bound="Hooked")


class Hooked:
    """A link with hooks of its own, besides those of the thread."""

    _link_hooks: dict[str, link_hook.LinkHook] | None = None

    @property
    def local_link_hooks(self) -> dict[str, link_hook.LinkHook]:
        """The hooks on this link alone, by name."""
        if self._link_hooks is None:
            self._link_hooks = {}
        return self._link_hooks

    def add_hook(
        self: _Self, hook: link_hook.LinkHook, name: str | None = None
    ) -> _Self:
        """Adds a hook that runs around every call of this link; returns the link."""
        if not isinstance(hook, link_hook.LinkHook):
            raise TypeError(f"add_hook: expected a LinkHook, got {type(hook).__name__}")
        name = hook.name if name is None else name
        if name in self.local_link_hooks:
            raise KeyError(
                f"add_hook: expected a new name, got {name!r}: it already exists"
            )
        hook.added(self)
        self.local_link_hooks[name] = hook
        return self

    def delete_hook(self, name: str) -> None:
        """Removes the hook of that name."""
        if name not in self.local_link_hooks:
            raise KeyError(f"delete_hook: expected the name of a hook, got {name!r}")
        self.local_link_hooks.pop(name).deleted(self)

    def _run_with_hooks(
        self, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Runs a method that hooks know by a name."""
        thread_hooks = link_hook.thread_hooks()
        hooks = [*thread_hooks.values(), *(self._link_hooks or {}).values()]
        before = link_hook._ForwardPreprocessCallbackArgs(self, name, args, kwargs)
        for hook in hooks:
            hook.forward_preprocess(before)
        out = method(*args, **kwargs)
        after = link_hook._ForwardPostprocessCallbackArgs(self, name, args, kwargs, out)
        for hook in hooks:
            hook.forward_postprocess(after)
        return out
