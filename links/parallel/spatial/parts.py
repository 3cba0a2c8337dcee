"""What a thread knows of its variables: parts of images, or the same on every rank."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from renga.utils.type_check import InvalidType

Function = TypeVar("Function", bound=Callable[..., Any])


class Knowledge:
    """Of one run of a model: arrays of three axes or more are parts unless noted.

    Args:
        take_part: from images that every rank has to this rank's part of them.
    """

    def __init__(self, take_part: Callable[[Any], Any]) -> None:
        self.take_part = take_part
        # The variables are kept, so that no other takes one's identity.
        self._noted: dict[int, tuple[Any, str]] = {}
        self.paused = False

    def note(self, x: Any, kind: str) -> None:
        """``x`` is ``whole``, or ``for parts``: the gradient is summed over ranks."""
        self._noted[id(x)] = (x, kind)

    def kind_of(self, x: Any) -> str:
        """``whole``, ``for parts`` or ``part``."""
        known = self._noted.get(id(x))
        if known is not None:
            return known[1]
        return "part" if getattr(x, "ndim", 0) > 2 else "whole"


class _Thread(threading.local):
    knowledge: Knowledge | None = None


_thread = _Thread()


@contextlib.contextmanager
def known(knowledge: Knowledge) -> Iterator[None]:
    """While a model runs."""
    before, _thread.knowledge = _thread.knowledge, knowledge
    try:
        yield
    finally:
        _thread.knowledge = before


def current() -> Knowledge | None:
    """What this thread knows; None where no model runs."""
    return _thread.knowledge


def is_whole(x: Any) -> bool:
    """Whether an image is known to be the same on every rank."""
    return _thread.knowledge is not None and _thread.knowledge.kind_of(x) == "whole"


def of_parts(
    gives: str = "part", takes: str = "part"
) -> Callable[[Function], Function]:
    """Marks functions of (a communicator or link, x, ...) that know of other ranks.

    Args:
        gives: the kind of the result.
        takes: the kind of x.

    Where a part is taken and a whole image comes, the function gets this rank's part.

    Raises:
        InvalidType: when called, x is of another kind.
    """

    def mark(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            knowledge = _thread.knowledge
            if knowledge is None or knowledge.paused:
                return function(*args, **kwargs)
            if takes == "part" and len(args) > 1:
                name = function.__name__
                args = (args[0], _as_part(knowledge, name, args[1]), *args[2:])
            elif takes == "part":
                kwargs["x"] = _as_part(knowledge, function.__name__, kwargs["x"])
            knowledge.paused = True
            try:
                y = function(*args, **kwargs)
            finally:
                knowledge.paused = False
            if gives != "part":
                knowledge.note(y, gives)
            return y

        return call  # type: ignore[return-value]

    return mark


def _as_part(knowledge: Knowledge, name: str, x: Any) -> Any:
    kind = knowledge.kind_of(x)
    if getattr(x, "ndim", 0) < 3 or kind == "part":
        return x
    if kind == "whole":
        return knowledge.take_part(x)
    raise InvalidType(
        f"{name}: expected images, got {x.shape} that came through spatial_broadcast"
    )
