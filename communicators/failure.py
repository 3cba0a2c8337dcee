"""Errors of failed ranks and of communicators that cannot be used any more."""

from __future__ import annotations

from typing import Any, NoReturn


class RankFailed(RuntimeError):
    """Another rank has failed or exited; the message names it and its error."""


def with_rank(error: BaseException, rank: int) -> BaseException:
    """An exception of the same type whose message begins with the rank."""
    text = f"rank {rank}: {error}"
    try:
        return type(error)(text)
    except TypeError:
        return RuntimeError(f"rank {rank}: {type(error).__name__}: {error}")


class Finalized:
    """The native communicator of one that was finalized: every call raises."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _raise_finalized(name)


def _raise_finalized(name: str) -> NoReturn:
    raise RuntimeError(f"{name}: this communicator was ended by finalize()")
