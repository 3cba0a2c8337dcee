"""What a forward pass leaves in links besides gradients, and how it is undone."""

from __future__ import annotations

import collections
import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from renga.core.backend import get_array_types
from renga.core.link.base import Link
from renga.core.link.own_values import own_persistent
from renga.core.parameter import Parameter

_CONTAINERS = (list, dict, set, collections.deque)
# Attributes in which links keep what they consist of.
_REGISTERED = {"_children", "_layers", "_link_hooks", "_params", "_persistent"}


@contextlib.contextmanager
def without_traces(*models: Link) -> Iterator[None]:
    """A block in test mode after which links are as before, but initialized.

    Persistent values that were None stay, as parameters do.
    """
    links = [link for model in models for link in model.links()]
    values = [(vars(link), own_persistent(link)) for link in links]
    missing = [(mine, k) for mine, own in values for k, x in own.items() if x is None]
    undo = traces_of(*models)
    try:
        yield
    finally:
        initialized = [(mine, name, mine.get(name)) for mine, name in missing]
        undo()
        for mine, name, value in initialized:
            mine[name] = value


def traces_of(*models: Link) -> Callable[[], None]:
    """A function that undoes what a forward pass has left in links.

    It puts back attributes, as the states of recurrent links, what is in lists,
    dictionaries, sets and deques that are attributes, and values of persistent arrays.
    Parameters stay, and links that are added.
    """
    array_types: Any = get_array_types()
    links = [link for model in models for link in model.links()]
    before = [(vars(link), dict(vars(link))) for link in links]
    contents: list[Elements | Items] = [
        Elements(array, array.copy())
        for link in links
        for array in own_persistent(link).values()
        if isinstance(array, array_types)
    ]
    contents += [items for link in links for items in items_of(link).values()]

    def undo() -> None:
        for mine, attributes in before:
            for name in list(mine):
                if not isinstance(mine[name], (Link, Parameter)):
                    if name in attributes:
                        mine[name] = attributes[name]
                    else:
                        del mine[name]
        for content in contents:
            content.put_back()

    return undo


class Items(NamedTuple):
    """A list, a dictionary or the like, with a copy that it is compared with."""

    container: Any
    content: Any

    def are_same(self) -> bool:
        """Whether the container has the same objects in one order."""
        a, b = self
        if isinstance(a, dict):
            a, b = [*a, *a.values()], [*b, *b.values()]
        return len(a) == len(b) and all(x is y for x, y in zip(a, b))

    def put_back(self) -> None:
        """Gives the container what was in it; one that has links keeps what it has."""
        own = self.container
        items = own.values() if isinstance(own, dict) else own
        if not any(isinstance(item, (Link, Parameter)) for item in items):
            is_ordered = isinstance(own, (list, collections.deque))
            own.clear()
            (own.extend if is_ordered else own.update)(self.content)


class Elements(NamedTuple):
    """An array, with a copy that it is compared with."""

    array: Any
    values: Any

    def are_same(self) -> bool:
        """Whether the array has the same bits."""
        same: bool = self.array.tobytes() == self.values.tobytes()
        return same

    def put_back(self) -> None:
        """Gives the array its former elements."""
        self.array[...] = self.values


def items_of(link: Link) -> dict[str, Items]:
    """By name, the containers among a link's attributes."""
    return {
        name: Items(value, copy.copy(value))
        for name, value in vars(link).items()
        if isinstance(value, _CONTAINERS) and name not in _REGISTERED
    }
