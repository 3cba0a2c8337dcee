"""Replacement of a model's links by parallel ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from renga.link import Link
from renga.links.parallel.sharding.cost import Cost


class LinkReplacement(NamedTuple):
    """A serial link and the parallel link that replaces it, or why none does."""

    link: Link
    replacement: Any  # None: the link stays
    reason: str = ""  # why it stays
    cost: Cost | None = None  # for inputs like the example; None without an example


def copy_with_replacements(
    model: Link,
    replacements: Mapping[int, Link],
    class_of: Callable[[Link], type[Link]] = type,
) -> Any:
    """A deep copy of a model in which some links are replaced.

    Args:
        replacements: by the ``id`` of the links that they replace. They are not copied.
        class_of: the class of the new model's link, from the link that it is a copy
            of, or the replacement: its own class, or one derived from that.
    """
    memo: dict[int, Any] = {}
    links = dict.fromkeys(model.links())
    for link in links:
        new = replacements.get(id(link), link)
        kind = class_of(new)
        if new is link or kind is not type(new):
            new = kind.__new__(kind)
        memo[id(link)] = new
    for link in links:
        source, new = replacements.get(id(link)), memo[id(link)]
        if source is None:
            vars(new).update(copy.deepcopy(vars(link), memo))
        elif source is not new:
            vars(new).update(vars(source))
    return memo[id(model)]
