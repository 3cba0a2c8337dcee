"""Values in tuples, named tuples, lists and dictionaries of any nesting."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any


def map_leaves(function: Callable[..., object], value: object, *others: object) -> Any:
    """``value`` with ``function(leaf, ...)`` in place of each leaf.

    Containers keep their types. Leaves at the same place of ``others``, which are built
    as ``value`` is, are further arguments.

    Raises:
        ValueError: ``others`` are built in another way.
    """
    if not isinstance(value, (dict, tuple, list)):
        return function(value, *others)
    return map_items(functools.partial(map_leaves, function), value, *others)


def map_items(function: Callable[..., object], value: Any, *others: Any) -> Any:
    """The same for the items of one container.

    Raises:
        ValueError: ``others`` are other containers.
    """
    for other in others:
        if type(other) is not type(value) or len(other) != len(value):
            raise ValueError(f"expected {_describe(value)}, got {_describe(other)}")
    if not isinstance(value, dict):
        items = [function(*each) for each in zip(value, *others)]
        return type(value)(*items) if is_named_tuple(value) else type(value)(items)
    if any(other.keys() != value.keys() for other in others):
        raise ValueError(f"expected the keys {list(value)} in all dictionaries")
    new = copy.copy(value)
    for key, item in value.items():
        new[key] = function(item, *[other[key] for other in others])
    return new


def leaves(value: object) -> Iterator[Any]:
    """What is in the containers, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def leaves_by_place(
    value: object, place: tuple[object, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The same with where they are; the items of a list are at one place."""
    if isinstance(value, (dict, tuple, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            own = None if isinstance(value, list) else key
            yield from leaves_by_place(item, (*place, own))
    else:
        yield place, value


def is_named_tuple(value: object) -> bool:
    """Whether it is an instance of a class made by ``namedtuple``."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _describe(value: Any) -> str:
    name = type(value).__name__
    is_container = isinstance(value, (dict, tuple, list))
    return f"{name} of {len(value)}" if is_container else name
