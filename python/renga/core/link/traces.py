"""What a forward pass leaves in links besides gradients, and how it is undone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from renga.core.backend import get_array_types
from renga.core.link.base import Link
from renga.core.parameter import Parameter


@contextlib.contextmanager
def without_traces(*models: Link) -> Iterator[None]:
    """A block after which links have the attributes they had before.

    Parameters and links that are added stay, and values within arrays.
    """
    undo = attributes_of(*models)
    yield
    undo()


def traces_of(*models: Link) -> Callable[[], None]:
    """A function that undoes what a forward pass has left in links.

    It puts back attributes, and values of persistent arrays; parameters stay.
    """
    undo = attributes_of(*models)
    array_types: Any = get_array_types()
    arrays = [
        (array, array.copy())
        for model in models
        for link in model.links()
        for array in map(vars(link).get, link._persistent)
        if isinstance(array, array_types)
    ]

    def undo_all() -> None:
        undo()
        for array, values in arrays:
            array[...] = values

    return undo_all


def attributes_of(*models: Link) -> Callable[[], None]:
    """A function that gives links the attributes that they have now.

    Parameters and links that are added stay, and values within arrays.
    """
    before = [(link, dict(vars(link))) for model in models for link in model.links()]

    def put_back() -> None:
        for link, attributes in before:
            mine = vars(link)
            for name in list(mine):
                if not isinstance(mine[name], (Link, Parameter)):
                    if name in attributes:
                        mine[name] = attributes[name]
                    else:
                        del mine[name]

    return put_back
