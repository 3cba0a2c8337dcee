"""Ranks that are threads of one process."""

from __future__ import annotations

import threading
from typing import Any, Callable, TypeVar

from renga import _communicators
from renga.communicators import settings
from renga.communicators.communicator import Communicator
from renga.communicators.failure import with_rank
from renga.utils.exceptions import describe

_Result = TypeVar("_Result")

_this_thread = threading.local()


def run(
    function: Callable[..., object],
    *args: object,
    ranks: int,
    shared_memory: bool = True,
    nodes: int = 1,
) -> list[_Result]:
    """Calls ``function(comm, *args)`` on one thread per rank.

    Args:
        function: called with a communicator of all ranks.
        args: its other arguments.
        ranks: the number of ranks.
        shared_memory: whether ranks of one node share memory or only send messages.
        nodes: the number of nodes to act as; between them, ranks send messages.

    Returns:
        The ranks' results, in rank order.

    Raises:
        BaseException: the first exception that a rank raised, with its rank; the
            others get :class:`RankFailed` in the call in which they wait.
    """
    if ranks < 1:
        raise ValueError(f"local.run: expected at least one rank, got {ranks}")
    if not 1 <= nodes <= ranks:
        raise ValueError(f"local.run: expected 1 to {ranks} nodes, got {nodes}")
    failure = _communicators.Failure()
    node_of_rank = [rank * nodes // ranks for rank in range(ranks)]
    group = _communicators.LocalGroup(node_of_rank, shared_memory, failure)
    results: list[Any] = [None] * ranks
    errors: list[tuple[int, BaseException]] = []

    def run_rank(rank: int) -> None:
        _this_thread.comm = _connect(group, rank)
        try:
            results[rank] = function(_this_thread.comm, *args)
        except BaseException as error:
            errors.append((rank, error))
            failure.set(f"rank {rank} failed: {describe(error)}")

    threads = [threading.Thread(target=run_rank, args=(rank,)) for rank in range(ranks)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(settings.SECONDS_PER_WAIT)
    except BaseException as error:  # Ctrl-C: the ranks must end too
        failure.set(f"the caller was interrupted: {type(error).__name__}")
        raise
    if errors:
        rank, first = errors[0]
        raise with_rank(first, rank) from first
    return results


def current() -> Communicator:
    """The communicator of this thread's rank; of a single rank outside :func:`run`."""
    comm: Communicator | None = getattr(_this_thread, "comm", None)
    if comm is not None:
        return comm
    group = _communicators.LocalGroup([0], True, _communicators.Failure())
    return _connect(group, 0)


def _connect(group: Any, rank: int) -> Communicator:
    return Communicator(
        _communicators.Communicator(group.transport(rank), settings.timeout(), True)
    )
