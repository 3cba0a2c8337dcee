"""Parameterized test cases."""

from __future__ import annotations

import itertools
import reprlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def product(
    parameter: Mapping[str, Iterable[object]]
    | Iterable[Iterable[Mapping[str, object]]],
) -> list[dict[str, object]]:
    """Every combination of the values of each name; or as ``product_dict``.

    A name may be several with commas between them (``"x, axis"``), whose values are
    tuples. The names are taken in alphabetical order, the last one varies fastest.
    """
    if not isinstance(parameter, Mapping):
        return product_dict(*parameter)
    return product_dict(
        *itertools.starmap(from_pytest_parameterize, sorted(parameter.items()))
    )


def product_dict(
    *parameters: Iterable[Mapping[str, object]],
) -> list[dict[str, object]]:
    """Every combination of one mapping from each list, merged."""
    return [
        {key: value for part in parts for key, value in part.items()}
        for parts in itertools.product(*parameters)
    ]


def from_pytest_parameterize(
    names: str | Sequence[str], values: Iterable[object]
) -> list[dict[str, object]]:
    """The arguments of ``pytest.mark.parametrize`` as a list of mappings.

    Raises:
        ValueError: there are several names, and a value has another number of parts.
    """
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    if len(names) == 1:
        return [{names[0]: value} for value in values]
    rows: list[Any] = list(values)
    for row in rows:
        if not isinstance(row, (tuple, list)) or len(row) != len(names):
            raise ValueError(
                f"parameters {', '.join(names)}: expected {len(names)} values, "
                f"got {row}"
            )
    return [dict(zip(names, row)) for row in rows]


class parameterize:
    """Decorator that makes a test case of its own for each of ``params``.

    They appear in the module as ``Name_param_0_{dtype=float32}`` and so on, with the
    parameters as attributes; the decorated name itself is no class any more, so that
    no runner collects it. Decorators may be stacked: the cases are the product.
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
        self.names: list[str] = []

    def publish(self, params: list[dict[str, Any]]) -> None:
        """Adds a case for each of ``params`` to the module in place of earlier ones."""
        module = vars(sys.modules[self.cls.__module__])
        for name in self.names:
            del module[name]
        self.params, self.names = params, []
        for i, values in enumerate(params):
            # Functions among the values must not become methods.
            body = {k: staticmethod(v) if callable(v) else v for k, v in values.items()}
            body["__module__"] = self.cls.__module__
            shown = ", ".join(f"{k}={_shown(values[k])}" for k in sorted(values))
            name = f"{self.cls.__name__}_param_{i}_{{{shown}}}"
            module[name] = type(name, (self.cls,), body)
            self.names.append(name)


def _shown(value: object) -> str:
    """A short text of a parameter for the name of a case."""
    text = getattr(value, "__name__", None)
    return text if isinstance(text, str) else " ".join(reprlib.repr(value).split())
