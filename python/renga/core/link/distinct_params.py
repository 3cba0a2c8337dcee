"""The one walk over the parameters of a model by identity, not by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from renga.core.parameter import Parameter


class Model(Protocol):
    """A link, or what walks over parameters like one."""

    def namedparams(self, include_uninit: bool) -> Iterator[tuple[str, Parameter]]: ...


class DistinctParam(NamedTuple):
    """A parameter and every path under which a model holds it, in sorted order."""

    param: Parameter
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """The first of its paths, which stands for the parameter."""
        return self.names[0]

    @property
    def is_shared(self) -> bool:
        """Whether the model holds it under more than one path."""
        return len(self.names) > 1


def distinct_params(model: Model, include_uninit: bool = True) -> list[DistinctParam]:
    """Each parameter of ``model`` once, with all of its names, by its first name.

    Code that makes, sends, counts or saves something for each parameter walks this
    list: tied parameters and a link under two names then count once, and the result is
    the same for models that register the same parameters in another order.

    Args:
        model: a link, or anything with ``namedparams``.
        include_uninit: whether parameters without a shape are in the list.
    """
    names: dict[int, list[str]] = {}
    params: dict[int, Parameter] = {}
    for name, param in sorted(model.namedparams(include_uninit), key=_name):
        names.setdefault(id(param), []).append(name)
        params[id(param)] = param
    return [DistinctParam(params[key], tuple(names[key])) for key in names]


def _name(named: tuple[str, Parameter]) -> str:
    return named[0]
