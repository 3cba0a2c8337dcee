"""Parameterized test cases."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def product(
    parameter: Mapping[str, Iterable[object]]
    | Iterable[Iterable[Mapping[str, object]]],
) -> list[dict[str, object]]:
    """Every combination of the values of each name; or as ``product_dict``."""
    if not isinstance(parameter, Mapping):
        return product_dict(*parameter)
    combinations = itertools.product(*parameter.values())
    return [dict(zip(parameter, values)) for values in combinations]


def product_dict(
    *parameters: Iterable[Mapping[str, object]],
) -> list[dict[str, object]]:
    """Every combination of one mapping from each list, merged."""
    return [
        {key: value for part in parts for key, value in part.items()}
        for parts in itertools.product(*parameters)
    ]


def from_pytest_parameterize(
    names: str | Sequence[str], values: Iterable[Any]
) -> list[dict[str, object]]:
    """The arguments of ``pytest.mark.parametrize`` as a list of mappings."""
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    if len(names) == 1:
        return [{names[0]: value} for value in values]
    return [dict(zip(names, row)) for row in values]


class parameterize:
    """Decorator that makes a test case of its own for each of ``params``.

    They appear in the module as ``Name_0``, ``Name_1``, …, with the parameters as
    attributes; the decorated name itself is no class any more, so that no runner
    collects it. Decorators may be stacked: the cases are the product.
    """

    def __init__(self, *params: Mapping[str, object]) -> None:
        self.params = params

    def __call__(self, cls: type | _Bundle) -> _Bundle:
        inner = cls if isinstance(cls, _Bundle) else _Bundle(cls, [{}])
        inner.publish(product_dict(self.params, inner.params))
        return inner


class parameterize_pytest(parameterize):
    """``parameterize`` that takes the arguments of ``pytest.mark.parametrize``."""

    def __init__(self, names: str | Sequence[str], values: Iterable[object]) -> None:
        super().__init__(*from_pytest_parameterize(names, values))


def unbundled(decorated: object) -> Any:
    """The class under decorators of this module."""
    return decorated.cls if isinstance(decorated, _Bundle) else decorated


class _Bundle:
    """The cases of one class, on which further decorators can be stacked."""

    def __init__(self, cls: type, params: list[dict[str, Any]]) -> None:
        self.cls = cls
        self.params = params

    def publish(self, params: list[dict[str, Any]]) -> None:
        """Adds a case for each of ``params`` to the module of the class."""
        module = vars(sys.modules[self.cls.__module__])
        self.params = params
        for i, values in enumerate(params):
            # Functions among the values must not become methods.
            body = {k: staticmethod(v) if callable(v) else v for k, v in values.items()}
            body["__module__"] = self.cls.__module__
            name = f"{self.cls.__name__}_{i}"
            module[name] = type(name, (self.cls,), body)
