"""Reproducible random numbers in tests."""

from __future__ import annotations

import functools
from typing import Any, Callable

import numpy

_states: list[Any] = []


def generate_seed() -> int:
    """A seed, which depends on the test and the number of calls in it.

    Raises:
        RuntimeError: it is called outside of ``fix_random``.
    """
    if not _states:
        raise RuntimeError("generate_seed: expected to be in a test with fix_random")
    return int(numpy.random.randint(2**31))


def fix_random(
    *, setup_method: str = "setUp", teardown_method: str = "tearDown"
) -> Callable[[object], object]:
    """Decorator of a test, or of a case, that seeds NumPy's global generator.

    After the test the generator has its old state.
    """

    def decorate(decorated: Any) -> Any:
        if isinstance(decorated, type):
            _wrap(decorated, setup_method, before=_seed)
            _wrap(decorated, teardown_method, after=_restore)
            return decorated

        @functools.wraps(decorated)
        def test(*args: object, **kwargs: object) -> Any:
            _seed()
            try:
                return decorated(*args, **kwargs)
            finally:
                _restore()

        return test

    return decorate


def _wrap(cls: type, name: str, before: Any = None, after: Any = None) -> None:
    method = getattr(cls, name, lambda self: None)

    @functools.wraps(method)
    def wrapped(self: Any) -> None:
        if before is not None:
            before()
        try:
            method(self)
        finally:
            if after is not None:
                after()

    setattr(cls, name, wrapped)


def _seed() -> None:
    _states.append(numpy.random.get_state())
    numpy.random.seed(0)


def _restore() -> None:
    numpy.random.set_state(_states.pop())
