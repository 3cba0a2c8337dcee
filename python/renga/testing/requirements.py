"""Tests that depend on what is installed, and on warnings."""

from __future__ import annotations

import contextlib
import importlib.metadata
import pkgutil
import re
import unittest
import warnings
from collections.abc import Iterator
from typing import Any, Callable, TypeVar
from unittest import mock

_Test = TypeVar("_Test", bound=Callable[..., object])

_REQUIREMENT = re.compile(r"\s*([\w.-]+)\s*((?:(?:[<>=!~]=|<|>)\s*[\w.*]+\s*,?\s*)*)$")
_CLAUSE = re.compile(r"([<>=!~]=|<|>)\s*([\w.*]+)")


def with_requires(*requirements: str) -> Callable[[_Test], _Test]:
    """Decorator that skips a test unless packages like ``"scipy>=1.0"`` are there."""
    met = all(map(_is_met, requirements))
    return unittest.skipUnless(met, "requires " + ", ".join(requirements))


def without_requires(*requirements: str) -> Callable[[_Test], _Test]:
    """Decorator that skips a test if such packages are there."""
    met = all(map(_is_met, requirements))
    return unittest.skipIf(met, "requires no " + ", ".join(requirements))


@contextlib.contextmanager
def assert_warns(expected: type[Warning]) -> Iterator[None]:
    """Context that raises AssertionError unless such a warning is issued in it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    if not any(issubclass(each.category, expected) for each in caught):
        raise AssertionError(f"expected a warning of {expected.__name__}")


def patch(target: str, *args: Any, **kwargs: Any) -> Any:
    """``unittest.mock.patch`` whose mock calls the original by default."""
    if not args and not {"new", "wraps", "side_effect"} & kwargs.keys():
        kwargs["wraps"] = _find(target)
    return mock.patch(target, *args, **kwargs)


def _find(target: str) -> Any:
    return pkgutil.resolve_name(target)


def _is_met(requirement: str) -> bool:
    matched = _REQUIREMENT.match(requirement)
    if matched is None:
        raise ValueError(f"with_requires: expected name>=version, got {requirement!r}")
    name, clauses = matched.groups()
    try:
        version = _release(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False
    return all(_holds(version, *clause) for clause in _CLAUSE.findall(clauses))


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version, without pre-release suffixes."""
    numbers = []
    for number in version.split("."):
        digits = re.match(r"\d+", number)
        if digits is None:
            break
        numbers.append(int(digits.group()))
    return tuple(numbers)


def _holds(version: tuple[int, ...], relation: str, wanted: str) -> bool:
    bound = _release(wanted)
    length = max(len(version), len(bound))
    ours, theirs = (v + (0,) * (length - len(v)) for v in (version, bound))
    if relation == "~=":
        return ours >= theirs and ours[: len(bound) - 1] == theirs[: len(bound) - 1]
    return {
        "<": ours < theirs,
        "<=": ours <= theirs,
        ">": ours > theirs,
        ">=": ours >= theirs,
        "==": ours == theirs,
        "!=": ours != theirs,
    }[relation]
