"""Counts of a rank's communication."""

from __future__ import annotations

import collections
import copy
import dataclasses
from collections.abc import Mapping


def _counter() -> collections.Counter[str]:
    return collections.Counter()


@dataclasses.dataclass
class Traffic:
    """Calls by name, and the messages and bytes that this rank sent in them.

    Each array of ``send`` is two messages, because one of 160 bytes with its shape goes
    before it. Collectives count what they send; ranks that share memory reduce and
    gather without a message. The calls of a group count in the communicator that it was
    split from, too.

    A simulated rank counts what it would send if no ranks shared memory, by the least
    that any algorithm sends. There, ``seconds`` is the predicted time for which the
    caller waited, and ``background_seconds`` that of communication in the background;
    both are 0 on other ranks.

    ``parent`` is that of the communicator which was split.
    """

    calls: collections.Counter[str] = dataclasses.field(default_factory=_counter)
    messages: int = 0
    bytes: int = 0
    seconds: float = 0.0
    background_seconds: float = 0.0
    bytes_by_call: collections.Counter[str] = dataclasses.field(
        default_factory=_counter
    )
    parent: Traffic | None = dataclasses.field(default=None, repr=False, compare=False)

    @classmethod
    def from_counts(cls, counts: Mapping[str, tuple[int, int, int]]) -> Traffic:
        """The traffic of calls with these numbers of calls, messages and bytes."""
        traffic = cls()
        for name, (calls, messages, size) in counts.items():
            traffic._count(name, calls, messages, size)
        return traffic

    def _count(self, name: str, calls: int, messages: int, size: int) -> None:
        self.calls[name] += calls
        self.messages += messages
        self.bytes += size
        if size > 0:
            self.bytes_by_call[name] += size

    def add(
        self, name: str, messages: int, size: int, seconds: float, wait: bool = True
    ) -> None:
        """Counts one call that sent ``size`` bytes in total."""
        self._count(name, 1, messages, size)
        if wait:
            self.seconds += seconds
        else:
            self.background_seconds += seconds
        if self.parent is not None:
            self.parent.add(name, messages, size, seconds, wait)

    def add_wait(self, seconds: float) -> None:
        """Adds time for which the caller waited."""
        self.seconds += seconds
        if self.parent is not None:
            self.parent.add_wait(seconds)

    def copy(self) -> Traffic:
        """The counts so far, which do not change any more."""
        return copy.deepcopy(dataclasses.replace(self, parent=None))
