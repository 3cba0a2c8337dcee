"""What a forward pass leaves in links besides gradients, and how it is undone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from renga.backend import get_array_types
from renga.link.base import Link
from renga.parameter import Parameter


@contextlib.contextmanager
def without_traces(*models: Link) -> Iterator[None]:
    """A block after which links have the attributes they had before.

    Parameters and links that are added stay, and values within arrays.
    """
    before = [(link, dict(vars(link))) for model in models for link in model.links()]
    yield
    _put_back(before)


def traces_of(*models: Link) -> Callable[[], None]:
    """A function that undoes what a forward pass has left in links.

    It puts back attributes, and values of persistent arrays; parameters stay.
    """
    before = [(link, dict(vars(link))) for model in models for link in model.links()]
    array_types: Any = get_array_types()
    arrays = [
        (array, array.copy())
        for link, attributes in before
        for array in map(attributes.get, link._persistent)
        if isinstance(array, array_types)
    ]

    def undo() -> None:
        _put_back(before)
        for array, values in arrays:
            array[...] = values

    return undo


def _put_back(before: Iterable[tuple[Link, dict[str, Any]]]) -> None:
    for link, attributes in before:
        mine = vars(link)
        for name in list(mine):
            if not isinstance(mine[name], (Link, Parameter)):
                if name in attributes:
                    mine[name] = attributes[name]
                else:
                    del mine[name]
