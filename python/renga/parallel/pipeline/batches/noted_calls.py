"""What a model counts, notes or averages in its calls, in several passes of a rank."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy

from renga.core.backend import get_array_types
from renga.core.link import Link
from renga.core.link.traces import Elements, Items, items_of

_Keys = tuple[int, str]  # the place of a link in the model, and a name


class NotedCalls:
    """Has a micro-batch change each number or array of a link once, as one pass does.

    A rank with several stages runs the model's code for each of them, and again where
    it recomputes. Only the first pass counts that changes a number, an array of a
    link that is not the library's, or what is in a list, a dictionary or the like.

    Args:
        links: those of the model; none where a micro-batch has one pass.
    """

    def __init__(self, links: Iterable[Link]) -> None:
        self._links = list(links)
        # The library's links change their arrays in one pass.
        self._programs = [
            (i, link)
            for i, link in enumerate(self._links)
            if not type(link).__module__.startswith("renga.")
        ]
        self._changed: dict[int, set[_Keys]] = {}  # by micro-batch

    def begin(self, micro_batch: int) -> None:
        """Begins a micro-batch, before its first pass."""
        self._changed[micro_batch] = set()

    @contextlib.contextmanager
    def of_pass(self, micro_batch: int, is_first: bool = True) -> Iterator[None]:
        """Around a pass; that of a recomputation is not the first of its stage."""
        before, contents = self._values(), self._contents()
        yield
        changed = self._changed[micro_batch]
        for key, value in self._values().items():
            if key not in before:
                changed.add(key)
            elif value is not before[key]:
                if key in changed or not is_first:
                    vars(self._links[key[0]])[key[1]] = before[key]
                changed.add(key)
        for key, content in contents.items():
            if not content.are_same():
                if key in changed or not is_first:
                    content.put_back()
                changed.add(key)

    def end(self, pending: Iterable[int]) -> None:
        """Forgets all micro-batches but those of which a pass follows."""
        self._changed = {i: self._changed[i] for i in pending}

    def _values(self) -> dict[_Keys, Any]:
        """Attributes that a change replaces."""
        numbers = {
            (i, name): value
            for i, link in enumerate(self._links)
            for name, value in vars(link).items()
            if isinstance(value, (int, float, numpy.generic))
        }
        return {**numbers, **self._arrays()}

    def _contents(self) -> dict[_Keys, Items | Elements]:
        """Attributes that change in place."""
        found: dict[_Keys, Items | Elements] = {
            (i, name): items
            for i, link in enumerate(self._links)
            for name, items in items_of(link).items()
        }
        for key, array in self._arrays().items():
            found[key] = Elements(array, array.copy())
        return found

    def _arrays(self) -> dict[_Keys, Any]:
        """Those of the program's links."""
        array_types: Any = get_array_types()
        return {
            (i, name): value
            for i, link in self._programs
            for name, value in vars(link).items()
            if isinstance(value, array_types)
        }
