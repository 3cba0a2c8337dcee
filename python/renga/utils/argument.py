"""Keyword arguments of functions that accept any."""

from __future__ import annotations

import sys
from typing import Any


def check_unexpected_kwargs(kwargs: dict[str, Any], **unexpected: str) -> None:
    """Raises ValueError with the message given for a keyword that is present."""
    for name, message in unexpected.items():
        if name in kwargs:
            raise ValueError(message)


def parse_kwargs(
    kwargs: dict[str, Any], *name_and_values: tuple[str, Any], **unexpected: str
) -> tuple[Any, ...]:
    """The values of the named keywords or their defaults; TypeError for others."""
    check_unexpected_kwargs(kwargs, **unexpected)
    values = tuple(kwargs.get(name, default) for name, default in name_and_values)
    _refuse(kwargs.keys() - {name for name, _ in name_and_values})
    return values


def assert_kwargs_empty(kwargs: dict[str, Any]) -> None:
    """Raises TypeError if any keyword was given."""
    _refuse(kwargs.keys())


def _refuse(names: Any) -> None:
    if names:
        caller = sys._getframe(2).f_code.co_name
        listed = ", ".join(map(repr, sorted(names)))
        raise TypeError(f"{caller}: got unexpected keyword arguments {listed}")
