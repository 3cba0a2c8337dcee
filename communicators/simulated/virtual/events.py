"""What virtual ranks wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from renga.utils.type_check import InvalidType

if TYPE_CHECKING:
    from renga.communicators.simulated.virtual.virtual_thread import (
        VirtualThread,
    )


class Event:
    """Something that happens at a virtual time, or fails then.

    ``time`` is in seconds, and None as long as it depends on what ranks do next.
    """

    def __init__(self, description: str) -> None:
        self.description = description
        self.time: float | None = None
        self.mismatch: str | None = None  # why it fails then
        self.waiting: list[VirtualThread] = []

    def has_happened(self, now: float) -> bool:
        """Whether its time has come; raises InvalidType if it has failed."""
        if self.time is None or self.time > now:
            return False
        if self.mismatch is not None:
            raise InvalidType(self.mismatch)
        return True

    def may_be_earlier(self) -> bool:
        """Whether its time may still become an earlier one."""
        return False

    def describe(self) -> str:
        """What it is, for errors."""
        return self.description
