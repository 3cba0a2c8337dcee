"""What the reduction of gradients tells the profiles that are active."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from renga.communicators.work import Work
from renga.core.parameter import Parameter
from renga.profiling.profiler import active_profiles


@contextlib.contextmanager
def span(name: str, kind: str) -> Iterator[None]:
    """Notes the block: ``waiting`` for other ranks, or ``communication``."""
    begin = time.perf_counter_ns()
    yield
    end = time.perf_counter_ns()
    for profile in active_profiles():
        profile.note_span(name, kind, begin, end)


def note_bucket(
    number: int, params: Sequence[Parameter], work: Work, launched: int
) -> None:
    """Notes when a bucket that is complete was averaged in the background.

    Args:
        number: of the bucket, in the order of launches.
        params: whose gradients are in it.
        work: its communication; one without a report is left out.
        launched: when, in nanoseconds.
    """
    profiles = active_profiles()
    report = getattr(work, "report", None)
    found = report() if profiles and report is not None else None
    if found is None:
        return
    details = {
        "gradients": len(params),
        "bytes": sum(param.size * param.dtype.itemsize for param in params),
        "sent messages": found.messages,
        "sent bytes": found.bytes,
        "queued us": (found.begin - launched) / 1e3,
    }
    for profile in profiles:
        profile.note_span(
            f"bucket {number}",
            "communication",
            found.begin,
            found.end,
            in_background=True,
            **details,
        )
