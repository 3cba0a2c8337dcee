"""Whether communication works here, and how fast it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from renga.communicators.doctor.checks import CHECKS, Skipped
from renga.communicators.doctor.speed import algorithms, links

__all__ = ["Finding", "algorithms", "examine", "links"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """What a check found: ``verdict`` is ``ok``, ``skipped`` or ``FAILED``."""

    name: str
    verdict: str
    text: str


def examine(comm: Any, large: bool = False) -> Iterator[Finding]:
    """The checks' findings one after another, the same on every rank.

    Args:
        comm: a communicator, on each of whose ranks this is called.
        large: whether to send a message of 2.5 GiB.
    """
    for name, check in CHECKS.items():
        try:
            mine = Finding(name, "ok", check(comm, large))
        except Skipped as reason:
            mine = Finding(name, "skipped", str(reason))
        except Exception as error:
            mine = Finding(name, "FAILED", f"rank {comm.rank}: {error}")
        findings = comm.allgather_obj(mine)
        yield next((f for f in findings if f.verdict == "FAILED"), findings[0])
