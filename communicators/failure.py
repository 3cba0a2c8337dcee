"""Errors of failed ranks and of communicators that cannot be used any more."""

from __future__ import annotations

from typing import Any, NoReturn

from renga.utils.exceptions import with_prefix


class RankFailed(RuntimeError):
    """Another rank has failed or exited; the message names it and its error."""


def with_rank(error: BaseException, rank: int) -> BaseException:
    """A copy of an exception whose message, or a note of it, begins with the rank."""
    return with_prefix(error, f"rank {rank}")


class Finalized:
    """The native communicator of one that was finalized: every call raises."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _raise_finalized(name)


def _raise_finalized(name: str) -> NoReturn:
    raise RuntimeError(f"{name}: this communicator was ended by finalize()")
