"""Counts of a simulated rank's communication."""

from __future__ import annotations

import collections
import dataclasses


@dataclasses.dataclass
class Traffic:
    """Calls by name, and the messages and bytes that this rank sent in them.

    ``seconds`` is the predicted time for which the caller waited, and
    ``background_seconds`` that of communication in the background.
    """

    calls: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    messages: int = 0
    bytes: int = 0
    seconds: float = 0.0
    background_seconds: float = 0.0

    def add(
        self, name: str, messages: int, size: int, seconds: float, wait: bool = True
    ) -> None:
        """Counts one call that sent ``size`` bytes in total."""
        self.calls[name] += 1
        self.messages += messages
        self.bytes += size
        if wait:
            self.seconds += seconds
        else:
            self.background_seconds += seconds
