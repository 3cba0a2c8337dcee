"""Ranks that are threads of one process."""

from __future__ import annotations

import threading
from typing import Any, Callable

from renga import _communicators
from renga.communicators import settings
from renga.communicators.communicator import Communicator
from renga.communicators.failure import with_rank

_this_thread = threading.local()


def run(
    function: Callable[..., Any],
    *args: Any,
    ranks: int,
    board: bool = True,
    nodes: int = 1,
) -> list[Any]:
    """Calls ``function(comm, *args)`` on a thread for each rank.

    Args:
        ranks: how many there are.
        board: whether the ranks of a node share memory or only exchange messages.
        nodes: on how many nodes the ranks act as if they were, which then exchange
            messages.

    Returns:
        What the ranks returned, in rank order.

    Raises:
        BaseException: as the first rank that raised did, with its number; the
            others get :class:`RankFailed` at the call in which they wait.
    """
    if ranks < 1:
        raise ValueError(f"local.run: expected at least one rank, got {ranks}")
    if not 1 <= nodes <= ranks:
        raise ValueError(f"local.run: expected 1 to {ranks} nodes, got {nodes}")
    failure = _communicators.Failure()
    places = [rank * nodes // ranks for rank in range(ranks)]
    hub = _communicators.Hub(places, board, failure)
    results: list[Any] = [None] * ranks
    errors: list[tuple[int, BaseException]] = []

    def play(rank: int) -> None:
        _this_thread.comm = _connect(hub, rank)
        try:
            results[rank] = function(_this_thread.comm, *args)
        except BaseException as error:
            errors.append((rank, error))
            failure.set(f"rank {rank} failed: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=play, args=(rank,)) for rank in range(ranks)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException as error:  # Ctrl-C: the ranks must not go on alone
        failure.set(f"the caller was interrupted: {type(error).__name__}")
        raise
    if errors:
        rank, first = errors[0]
        raise with_rank(first, rank) from first
    return results


def current() -> Communicator:
    """The communicator of the rank that this thread is; of a lone one outside."""
    comm = getattr(_this_thread, "comm", None)
    if comm is not None:
        return comm
    return _connect(_communicators.Hub([0], True, _communicators.Failure()), 0)


def _connect(hub: Any, rank: int) -> Communicator:
    return Communicator(
        _communicators.Communicator(hub.transport(rank), settings.timeout(), True)
    )
