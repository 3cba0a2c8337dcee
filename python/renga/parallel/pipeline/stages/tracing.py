"""What a pipeline tells the profiles that are active on its ranks."""

from __future__ import annotations

import secrets
from collections import Counter

from renga.communicators import Communicator
from renga.parallel.pipeline.schedule import Action
from renga.parallel.pipeline.stages.messages import VALUE, Route
from renga.profiling.profiler import active_profiles

_NAMES = {"F": "forward", "B": "backward", "W": "weights", "U": "update"}


class Tracing:
    """Passes, and the messages between stages; every rank of a pipeline makes it.

    The messages of a route are counted at both ends, whether or not a profile is
    active there: so the two ends of a message have the same name.
    """

    def __init__(self, comm: Communicator) -> None:
        self._name = comm.bcast_obj(secrets.token_hex(8))
        self._messages: Counter[tuple[Route, bool]] = Counter()

    def note_pass(self, action: Action, start: int) -> None:
        """Notes an action of this rank that has ended.

        Args:
            action: what was done.
            start: when it began, in nanoseconds of ``time.perf_counter_ns``.
        """
        kind, stage, i = action
        for profile in active_profiles():
            profile.note_pass(_NAMES[kind], stage, i, start)

    def note_message(self, route: Route, is_sent: bool) -> None:
        """Notes that a message is sent now, or has been received."""
        self._messages[route, is_sent] += 1
        number = self._messages[route, is_sent]
        name = "activations" if route.kind == VALUE else "gradients"
        id = f"{self._name} {name} {route.source}-{route.target} {number}"
        for profile in active_profiles():
            profile.note_message(id, name, is_sent)
