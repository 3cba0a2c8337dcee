"""What a forward pass leaves in links besides gradients, and how it is undone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from renga.core.backend import get_array_types
from renga.core.link.base import Link
from renga.core.link.own_values import own_persistent
from renga.core.parameter import Parameter


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

    It puts back attributes, as the states of recurrent links, and values of persistent
    arrays. Parameters stay, and links that are added.
    """
    array_types: Any = get_array_types()
    links = [link for model in models for link in model.links()]
    before = [(vars(link), dict(vars(link))) for link in links]
    arrays = [
        (array, array.copy())
        for link in links
        for array in own_persistent(link).values()
        if isinstance(array, array_types)
    ]

    def undo() -> None:
        for mine, attributes in before:
            for name in list(mine):
                if not isinstance(mine[name], (Link, Parameter)):
                    if name in attributes:
                        mine[name] = attributes[name]
                    else:
                        del mine[name]
        for array, values in arrays:
            array[...] = values

    return undo
