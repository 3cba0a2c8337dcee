"""Activations that links keep after a call, of which each rank has a shard.

A link may read them in its next call, as a recurrent one does. What reads them outside,
such as a loss function, would take a shard for the whole: it is refused. So are numbers
that a link has computed of them, such as a norm.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy

from renga.core.backend import get_array_types
from renga.core.link import Link
from renga.core.link.own_values import own_params, own_persistent
from renga.core.variable import Variable
from renga.links.parallel.forms import is_form
from renga.parallel.placement.kept_by_link import PartKeptByLink
from renga.utils.containers import leaves


class KeptShards:
    """Which attributes of a model's links are shards."""

    def __init__(self) -> None:
        # By the classes of links, of which each link of a model, and its copies, has
        # one of its own.
        self._names: set[tuple[type[Link], str]] = set()

    def add(self, link: Link, name: str) -> None:
        """Takes note of an attribute."""
        self._names.add((type(link), name))

    def hide(self, model: Link) -> None:
        """Puts what refuses to be read in the place of shards."""
        for link, name in self._attributes(model):
            value = vars(link)[name]
            if not isinstance(value, PartKeptByLink) and _has_numbers(value):
                vars(link)[name] = PartKeptByLink(
                    f"{type(link).__name__}.{name}",
                    value,
                    "a shard of it, or what it has computed of one",
                    "let the model return it",
                )

    def show(self, model: Link) -> None:
        """Puts them back."""
        for link, name in self._attributes(model):
            value = vars(link)[name]
            if isinstance(value, PartKeptByLink):
                vars(link)[name] = value.value

    def _attributes(self, model: Link) -> Iterator[tuple[Link, str]]:
        for link in model.links() if self._names else ():
            for kind, name in self._names:
                if type(link) is kind and name in vars(link):
                    yield link, name


def kept_by(model: Link) -> dict[tuple[str, str], object]:
    """What a model's links have in attributes, by their paths and names.

    That is numbers, arrays and Variables, also in lists, tuples and dictionaries, which
    are neither parameters nor persistent. Those of parallel links are left out, which
    know what they keep.
    """
    return {
        (path, name): value
        for path, link in model.namedlinks()
        for known in ({*own_params(link), *own_persistent(link)},)
        for name, value in vars(link).items()
        if name not in known and _has_numbers(value) and not is_form(link)
    }


def _has_numbers(value: object) -> bool:
    kinds = (Variable, *get_array_types(), int, float, numpy.generic)
    return any(isinstance(leaf, kinds) for leaf in leaves(value))
