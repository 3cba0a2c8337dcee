"""Checks of keyword arguments and numbers."""

from __future__ import annotations

import inspect
import math
import numbers
import sys
from collections.abc import Iterable
from typing import Any

import numpy

from renga._runtime.suggestions import suggestion


def check_unexpected_kwargs(kwargs: dict[str, object], **unexpected: str) -> None:
    """Raises ValueError with the message given for a keyword that is present."""
    for name, message in unexpected.items():
        if name in kwargs:
            raise ValueError(message)


def parse_kwargs(
    kwargs: dict[str, object], *name_and_values: tuple[str, object], **unexpected: str
) -> tuple[Any, ...]:
    """The values of the named keywords or their defaults; TypeError for others.

    The named keywords leave ``kwargs``: what a method hands on are the others.
    """
    if not kwargs:  # mostly, and small operations are called often
        return tuple([default for _, default in name_and_values])
    values = tuple([kwargs.pop(name, default) for name, default in name_and_values])
    if kwargs:
        check_unexpected_kwargs(kwargs, **unexpected)
        _refuse(kwargs.keys(), [name for name, _ in name_and_values])
    return values


def assert_kwargs_empty(kwargs: dict[str, object]) -> None:
    """Raises TypeError if any keyword was given."""
    _refuse(kwargs.keys())


def by_name(value: object) -> dict[str, Any]:
    """A dictionary as it is; another value as the one that is called ``main``."""
    return value if isinstance(value, dict) else {"main": value}


def check_number(
    what: str, value: object, low: float = -math.inf, is_above: bool = False
) -> None:
    """Raises TypeError unless ``value`` is a real number, ValueError unless >= low.

    Args:
        is_above: whether it has to be > low.
    """
    is_scalar = isinstance(value, numpy.ndarray) and value.size == 1
    if not isinstance(value, (numbers.Real, numpy.bool_)) and not is_scalar:
        raise TypeError(f"{what}: expected a number, got {value!r}")
    if not value >= low or (is_above and value == low):  # type: ignore[operator]
        sign = ">" if is_above else ">="
        bound = "" if low == -math.inf else f" {sign} {low:g}"
        raise ValueError(f"{what}: expected a number{bound}, got {value}")


def check_count(what: str, value: object, low: int = 1) -> None:
    """Raises TypeError unless ``value`` is an integer, ValueError unless >= low."""
    if not isinstance(value, numbers.Integral):
        raise TypeError(f"{what}: expected an integer, got {value!r}")
    if value < low:
        raise ValueError(f"{what}: expected at least {low}, got {value}")


def check_choice(what: str, value: object, *choices: object) -> None:
    """Raises ValueError unless ``value`` is one of ``choices``."""
    if value not in choices:
        *others, last = map(repr, choices)
        known = f"{', '.join(others)} or {last}"
        raise ValueError(f"{what} {known}, got {value!r}")


def _refuse(names: Any, known: Iterable[str] = ()) -> None:
    if names:
        frame = sys._getframe(2)
        caller = frame.f_code.co_name
        known = [*frame.f_code.co_varnames, *known]
        if caller == "__init__" and "self" in frame.f_locals:
            made = type(frame.f_locals["self"])
            caller = made.__name__
            known += inspect.signature(made).parameters
        listed = ", ".join(map(repr, sorted(names)))
        hint = suggestion(min(names), known)
        raise TypeError(f"{caller}() got unexpected keyword argument(s) {listed}{hint}")
