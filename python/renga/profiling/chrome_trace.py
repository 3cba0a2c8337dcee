"""Traces in Chrome's Trace Event Format, of one process or of all ranks."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from renga.core.types import Path
from renga.serializers.atomic import atomic_write

if TYPE_CHECKING:
    from renga.communicators import Communicator

TraceEvent = dict[str, Any]

_ROUND_TRIPS = 10


def write(path: Path, events: Sequence[TraceEvent]) -> None:
    """Writes events as JSON for chrome://tracing and Perfetto.

    Messages of which only one end has been seen are left out: the profile of a rank may
    have begun between the two, or be saved alone.

    Raises:
        OSError: the file cannot be written; an old file at ``path`` is then unchanged.
    """
    sent, received = ({e["id"] for e in events if e["ph"] == phase} for phase in "sf")
    complete = sent & received
    shown = [e for e in events if "id" not in e or e["id"] in complete]
    trace = {"traceEvents": shown, "displayTimeUnit": "ms"}
    with atomic_write(path, "w") as file:
        json.dump(trace, file)


def write_of_ranks(
    path: Path, name: str, events: list[TraceEvent], comm: Communicator
) -> None:
    """Rank 0 writes the events of all ranks, by its clock; every rank calls it.

    The number of a rank takes the place of its process's, so that each rank is shown
    as one process.

    Args:
        path: of the file that rank 0 writes.
        name: of this rank, as it is shown.
        events: of this rank; times are those of its ``time.perf_counter_ns``.
        comm: the ranks.

    Raises:
        OSError: on every rank, if rank 0 cannot write the file.
    """
    group = comm.split(0, comm.rank)  # apart from the user's messages
    offset = clock_offset(group) / 1e3
    for event in events:
        event["pid"] = comm.rank
        if "ts" in event:
            event["ts"] += offset
    events += [
        metadata("process_name", comm.rank, name=name),
        metadata("process_sort_index", comm.rank, sort_index=comm.rank),
    ]
    gathered = group.gather_obj(events)
    error = None
    if gathered is not None:
        try:
            write(path, [event for of_rank in gathered for event in of_rank])
        except OSError as raised:
            error = raised
    error = group.bcast_obj(error)
    if error is not None:
        raise error


def metadata(kind: str, pid: int, tid: int = 0, **args: object) -> TraceEvent:
    """An event that names or orders a process or a thread."""
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": args}


def clock_offset(
    comm: Communicator, now: Callable[[], int] = time.perf_counter_ns
) -> int:
    """What to add to this rank's clock to get rank 0's; every rank calls it.

    A rank reads its clock between the two moments at which rank 0 sends it a message
    and has its answer; the offsets that all such round trips allow are an interval. It
    is 0 if that is allowed, because the ranks of one node have the same clock,
    otherwise the middle, which is wrong by half a round trip at most.

    Args:
        comm: ranks that send no other messages meanwhile.
        now: this rank's clock, in nanoseconds.
    """
    if comm.rank > 0:
        for _ in range(_ROUND_TRIPS):
            comm.recv_obj(0, 0)
            comm.send_obj(now(), 0)
        offset: int = comm.recv_obj(0, 0)
        return offset
    for rank in range(1, comm.size):
        least, most = -math.inf, math.inf
        for _ in range(_ROUND_TRIPS):
            sent = now()
            comm.send_obj(None, rank)
            there = comm.recv_obj(rank, 0)
            least, most = max(least, sent - there), min(most, now() - there)
        comm.send_obj(0 if least <= 0 <= most else int(least + most) // 2, rank)
    return 0
