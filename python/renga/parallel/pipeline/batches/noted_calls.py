"""What a model counts or notes of its calls, in several passes of a rank."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy

from renga.core.link import Link
from renga.core.link.traces import Items, items_of

_Keys = tuple[int, str]  # the place of a link in the model, and a name


class NotedCalls:
    """Has a micro-batch change each number of a link once, as one pass does.

    A rank with several stages runs the model's code for each of them, and again where
    it recomputes. Only the first pass counts that changes a number, or what is in a
    list, a dictionary or the like.

    Args:
        links: those of the model; none where a micro-batch has one pass.
    """

    def __init__(self, links: Iterable[Link]) -> None:
        self._links = list(links)
        self._changed: dict[int, set[_Keys]] = {}  # by micro-batch

    def begin(self, micro_batch: int) -> None:
        """Begins a micro-batch, before its first pass."""
        self._changed[micro_batch] = set()

    @contextlib.contextmanager
    def of_pass(self, micro_batch: int, is_first: bool = True) -> Iterator[None]:
        """Around a pass; that of a recomputation is not the first of its stage."""
        before, containers = self._numbers(), self._containers()
        yield
        changed = self._changed[micro_batch]
        for key, value in self._numbers().items():
            if key not in before:
                changed.add(key)
            elif value is not before[key]:
                if key in changed or not is_first:
                    vars(self._links[key[0]])[key[1]] = before[key]
                changed.add(key)
        for key, items in containers.items():
            if not items.are_same():
                if key in changed or not is_first:
                    items.put_back()
                changed.add(key)

    def end(self, pending: Iterable[int]) -> None:
        """Forgets all micro-batches but those of which a pass follows."""
        self._changed = {i: self._changed[i] for i in pending}

    def _numbers(self) -> dict[_Keys, Any]:
        return {
            (i, name): value
            for i, link in enumerate(self._links)
            for name, value in vars(link).items()
            if isinstance(value, (int, float, numpy.generic))
        }

    def _containers(self) -> dict[_Keys, Items]:
        return {
            (i, name): items
            for i, link in enumerate(self._links)
            for name, items in items_of(link).items()
        }
