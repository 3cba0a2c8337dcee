"""A forward pass that is made again with other parameters, as if for the first time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from renga.core.link import Link
from renga.core.link.own_values import own_persistent
from renga.core.link.traces import traces_of
from renga.functions.noise.seed import noted_seeds

_FIRST_PASSES = 2  # which show what links keep of a pass, such as states
_NOTHING = object()


class RepeatablePass:
    """Forward passes of a model, of which the last one can be undone.

    The pass after that draws the seeds of random functions that the undone one has
    drawn.
    """

    def __init__(self) -> None:
        self._passes = 0
        self._links: list[Link] = []  # that keep something
        self._undo: Callable[[], None] | None = None
        self._seeds: list[int] = []
        self._repeated: list[int] = []

    def begin_again(self) -> None:
        """Finds out anew which links keep something: there may be others."""
        self._passes = 0

    def run(self, model: Link, forward: Callable[[], object]) -> Any:
        """The result of a pass."""
        is_first = self._passes < _FIRST_PASSES
        links = model.links() if is_first else ()
        before = [(link, dict(vars(link))) for link in links]
        self._undo = traces_of(*([model] if is_first else self._links))
        self._seeds, self._passes = [], self._passes + 1
        with noted_seeds(self._seeds, self._repeated):
            result = forward()
        self._repeated = []
        if is_first:
            self._links = [link for link, own in before if _keeps_something(link, own)]
        return result

    def undo(self) -> None:
        """Takes back the last pass, if there was one after those that are kept."""
        if self._undo is not None:
            self._undo()
            self._undo, self._repeated = None, self._seeds

    def keep(self) -> None:
        """Keeps the last pass, and frees what was before it."""
        self._undo = None


def _keeps_something(link: Link, before: dict[str, Any]) -> bool:
    now = vars(link)
    return bool(own_persistent(link)) or any(
        before.get(name, _NOTHING) is not value for name, value in now.items()
    )
