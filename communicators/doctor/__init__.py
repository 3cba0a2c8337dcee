"""Diagnostics: whether communication works here, and how fast it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from renga.communicators.communicator import Communicator
from renga.communicators.doctor.checks import CHECKS, Skipped
from renga.communicators.doctor.speed import algorithms, links

__all__ = ["Finding", "algorithms", "examine", "links"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """The result of a check; ``verdict`` is ``ok``, ``skipped`` or ``FAILED``."""

    name: str
    verdict: str
    text: str


def examine(comm: Communicator, large: bool = False) -> Iterator[Finding]:
    """Runs the checks and yields their findings, the same on every rank.

    Args:
        comm: a communicator; each of its ranks calls this.
        large: whether to send a message of 2.5 GiB.
    """
    for name, check in CHECKS.items():
        try:
            own = Finding(name, "ok", check(comm, large))
        except Skipped as reason:
            own = Finding(name, "skipped", str(reason))
        except Exception as error:
            own = Finding(name, "FAILED", f"rank {comm.rank}: {error}")
        findings = comm.allgather_obj(own)
        yield next((f for f in findings if f.verdict == "FAILED"), findings[0])
