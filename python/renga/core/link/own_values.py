"""What a link itself has, apart from its children, by name; the paths of links."""

from __future__ import annotations

from typing import Any

from renga.core.backend import get_array_types
from renga.core.link.base import Link
from renga.core.parameter import Parameter
from renga.core.types import Array


def own_params(link: Link) -> dict[str, Parameter]:
    """The parameters, in the order of their names."""
    mine = vars(link)
    return {name: mine[name] for name in sorted(link._params)}


def own_persistent(link: Link) -> dict[str, object]:
    """The persistent values, in the order of their names."""
    mine = vars(link)
    return {name: mine[name] for name in sorted(link._persistent)}


def link_paths(model: Link) -> dict[int, str]:
    """The first path of each link of a model, by the link's ``id``."""
    return {id(link): path for path, link in reversed(list(model.namedlinks()))}


def persistent_arrays(model: Link) -> dict[str, Array]:
    """The persistent arrays of all links by their paths, in the order of these."""
    kinds: Any = get_array_types()
    return {
        f"{path}/{name}": value
        for path, link in sorted(model.namedlinks())
        for name, value in own_persistent(link).items()
        if isinstance(value, kinds)
    }


def floating_persistent_arrays(model: Link) -> list[Array]:
    """Those persistent arrays that hold floats, such as statistics, each once."""
    found = (x for x in persistent_arrays(model).values() if x.dtype.kind == "f")
    return list({id(x): x for x in found}.values())  # a link may have two names
