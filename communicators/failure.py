"""What a rank hears, and what a caller hears, when another rank has failed."""

from __future__ import annotations


class RankFailed(RuntimeError):
    """Another rank has failed; the message names it and what it raised."""


def with_rank(error: BaseException, rank: int) -> BaseException:
    """An exception of the same type whose message begins with the rank."""
    text = f"rank {rank}: {error}"
    try:
        return type(error)(text)
    except TypeError:
        return RuntimeError(f"rank {rank}: {type(error).__name__}: {error}")
