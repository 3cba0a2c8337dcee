"""Hookable: named functions that run before and after an update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from renga.core.parameter import Parameter

_TIMINGS = ("pre", "post", "auto")


def knows_shards(hook: Callable[..., object]) -> bool:
    """Whether a hook is renga's own: of a parameter it may see one rank's shard."""
    return str(getattr(hook, "__module__", "")).startswith("renga.")


def call_for_param(hook: Callable[..., object], rule: object, param: Parameter) -> None:
    """Calls a hook of one parameter, of which a hook of the program sees the whole."""
    if knows_shards(hook):
        hook(rule, param)
        return
    with param.seen_whole():
        hook(rule, param)


class Hookable:
    """Keeps hook functions by name, in the order in which they were added."""

    _pre_update_hooks: dict[str, Callable[..., Any]] | None = None
    _post_update_hooks: dict[str, Callable[..., Any]] | None = None

    def add_hook(
        self, hook: Callable[..., object], name: str | None = None, timing: str = "auto"
    ) -> None:
        """Adds a function to run before (``pre``) or after (``post``) each update.

        ``auto`` follows the attribute ``timing`` of the hook, before without one.
        The name defaults to that of the hook; KeyError if it is taken.
        """
        if not callable(hook):
            raise TypeError(f"add_hook: expected a callable, got {type(hook).__name__}")
        if isinstance(hook, type):
            raise TypeError(f"add_hook: expected a hook, got the class {hook.__name__}")
        if timing not in _TIMINGS:
            raise ValueError(
                f"add_hook: expected a timing of {_TIMINGS}, got {timing!r}"
            )
        if timing == "auto":
            timing = getattr(hook, "timing", "pre")
        if name is None:
            name = getattr(hook, "name", getattr(hook, "__name__", None))
        if name is None:
            raise ValueError(
                "add_hook: expected a name for a hook without one, got None"
            )
        if name in self.update_hooks("pre") or name in self.update_hooks("post"):
            raise KeyError(
                f"add_hook: expected a new name, got {name!r}: it already exists"
            )
        self.update_hooks(timing)[name] = hook

    def remove_hook(self, name: str) -> None:
        """Removes the hook of that name; KeyError without one."""
        if name in self.update_hooks("pre"):
            del self.update_hooks("pre")[name]
        else:
            del self.update_hooks("post")[name]

    @property
    def has_update_hooks(self) -> bool:
        """Whether there is a hook, before or after updates."""
        return bool(self._pre_update_hooks or self._post_update_hooks)

    def clear_update_hooks(self) -> None:
        """Removes all hooks. Copies of this object that share its hooks keep them."""
        self._pre_update_hooks = self._post_update_hooks = None

    def update_hooks(self, timing: str) -> dict[str, Callable[..., object]]:
        """The hooks before (``pre``) or after (``post``) updates, by name."""
        if self._pre_update_hooks is None or self._post_update_hooks is None:
            self._pre_update_hooks, self._post_update_hooks = {}, {}
        if timing == "pre":
            return self._pre_update_hooks
        return self._post_update_hooks

    def timed_hooks(self) -> Iterator[tuple[str, str, Callable[..., object]]]:
        """The timing, the name and the function of each hook, ``pre`` ones first."""
        for timing in ("pre", "post"):
            for name, hook in self.update_hooks(timing).items():
                yield timing, name, hook
