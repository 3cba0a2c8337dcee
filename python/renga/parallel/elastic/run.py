"""The decorator of functions that train whichever ranks there are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from renga.communicators import create_communicator
from renga.parallel.elastic import membership

_Result = TypeVar("_Result")


class Leave(BaseException):
    """Ends ``train`` on all ranks: a checkpoint is saved, another job goes on."""


def run(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Has a function train with whichever ranks there are::

        @elastic.run
        def train(comm, epochs):
            ...

        train(20)

    Under ``renga run -n 2:4 --restarts 10``, ``train`` is called again, in new
    processes, whenever the ranks have changed; it goes on from where its
    :class:`Checkpoints` say. What the program does before is done in advance, by a
    job that stands by: it should not depend on how far training has come. Started in
    any other way, ``train`` is called once.

    Args:
        function: its first argument is the communicator of all ranks.

    Raises:
        TypeError: it cannot be called.
    """
    if not callable(function):
        raise TypeError(f"elastic.run: expected a function, got {function!r}")

    @functools.wraps(function)
    def train(*args: object, **kwargs: object) -> _Result:
        comm = create_communicator()
        member = membership.current()
        if member is None:
            return function(comm, *args, **kwargs)
        member.wait_for_training()
        try:
            return function(comm, *args, **kwargs)
        except Leave:
            member.leave()
            raise SystemExit(0) from None

    return train


def is_asked_to_leave() -> bool:
    """Whether a job of another size stands by to go on from the next checkpoint."""
    member = membership.current()
    return member is not None and member.is_asked_to_leave
