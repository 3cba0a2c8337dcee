"""All ranks of a program in one process, on virtual clocks.

Every rank has a thread and a clock. One thread runs at a time; it gives its turn to
another where it communicates, so that the ranks communicate in the order of their
clocks. Each has its own global generators of NumPy and of ``random``, seeded by NumPy's
of the caller.

A message of ``n`` bytes takes ``latency + n / bandwidth`` from when the links of its
sender and of its receiver are free. A send in the foreground ends with it, and with the
receive if there are more than 64 KiB. A collective takes the time that the machine
predicts from when all ranks have called it and their links are free.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

from renga.communicators.failure import with_rank
from renga.communicators.simulated.machine import Machine
from renga.communicators.simulated.virtual.group import Group
from renga.communicators.simulated.virtual.network import VirtualNetwork
from renga.communicators.simulated.virtual.scheduler import Deadlock, Scheduler
from renga.communicators.simulated.virtual.virtual_communicator import (
    VirtualCommunicator,
)
from renga.communicators.simulated.virtual.virtual_native import VirtualNative
from renga.communicators.transport.traffic import Traffic

__all__ = ["Deadlock", "Outcome", "VirtualCommunicator", "run"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The ranks' results, and predictions; each list is in rank order.

    Args:
        results: what the function returned.
        seconds: the virtual times at which it returned.
        traffic: counts of the communication; ``traffic[r].seconds`` is the part of
            ``seconds[r]`` in which rank ``r`` did not compute.
    """

    results: list[Any]
    seconds: list[float]
    traffic: list[Traffic]


def run(
    function: Callable[[VirtualCommunicator], object],
    ranks: int,
    machine: Machine | None = None,
    seconds_of: Callable[[int, object], float] | None = None,
    moves: bool = True,
) -> Outcome:
    """Calls ``function(comm)`` for each rank: exact results, predicted times.

    Args:
        function: called with a communicator of all ranks. A rank waits for others only
            in its methods, and communicates from the thread that calls ``function``.
        ranks: the number of ranks.
        machine: the model of the network; by default :class:`Machine`'s.
        seconds_of: ``seconds_of(rank, task)`` is the time that ``comm.advance(task)``
            takes. Then nothing else takes time but ``comm.compute(seconds)`` and
            communication, and the times are the same in every run. By default
            computation takes the time that it really takes.
        moves: whether collectives compute and write their results. If not, they only
            take their time, and the memory of large arrays is never touched.

    Raises:
        BaseException: the first exception that a rank raised, with its rank; all other
            ranks get :class:`RankFailed` in their next call.
        Deadlock: if every rank waits for another one.
        ValueError: if there is no rank, or the ranks do not fill the nodes.
    """
    machine = Machine() if machine is None else machine
    if ranks < 1:
        raise ValueError(f"simulated.run: expected at least one rank, got {ranks}")
    machine.check_ranks(ranks)
    scheduler = Scheduler(ranks, seconds_of, moves)
    world = Group(scheduler, VirtualNetwork(machine, ranks), range(ranks))
    results: list[Any] = [None] * ranks

    def run_rank(rank: int) -> None:
        thread = scheduler.threads[rank]
        native = VirtualNative(world, rank, thread, thread.traffic)
        results[rank] = function(VirtualCommunicator(native))

    scheduler.run(run_rank)
    if scheduler.errors:
        rank, first = scheduler.errors[0]
        if isinstance(first, Deadlock):
            raise first
        raise with_rank(first, rank) from first
    return Outcome(
        results,
        [thread.clock for thread in scheduler.threads],
        [thread.traffic for thread in scheduler.threads],
    )
