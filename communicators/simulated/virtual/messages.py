"""Messages between two virtual ranks."""

from __future__ import annotations

import collections
from collections.abc import Sequence

import numpy as np

from renga.communicators.simulated.virtual.scheduler import Event, Scheduler
from renga.core.types import Array

# Up to this size a message is buffered and its sender need not wait for the receive, as
# between threads.
_EAGER_BYTES = 1 << 16


class SendEvent(Event):
    """Messages sent together; happens when the sender may go on."""

    def __init__(self, description: str, arrival: float) -> None:
        super().__init__(description)
        self.arrival = arrival
        self.ready_at = arrival  # for the sender, as far as is known
        self.unbuffered = 0  # arrays that are not received yet


class ReceiveEvent(Event):
    """Bytes to receive into; happens when all have arrived.

    If the first is not ``expected``, the others are not written to.
    """

    def __init__(
        self,
        description: str,
        ys: Sequence[Array],
        now: float,
        expected: Array | None = None,
    ) -> None:
        super().__init__(description)
        self._expected = expected
        self.posted_at = now
        self.arrival = now  # of those that have been sent
        self.missing = len(ys)
        self.is_cancelled = False

    def take(self, y: Array, part: Array, send: SendEvent) -> None:
        """Receives one array."""
        self.missing -= 1
        self.arrival = max(self.arrival, send.arrival)
        expected, self._expected = self._expected, None
        if self.mismatch is not None:
            return
        if part.nbytes != y.nbytes:
            self._refuse(f"expected {y.nbytes} bytes, got {part.nbytes}")
            return
        y[...] = part
        if expected is not None and not np.array_equal(y, expected):
            self._refuse("the header is not the expected one")

    def _refuse(self, reason: str) -> None:
        self.mismatch = f"{self.description}: {reason}"


class Arrival(Event):
    """Messages to one rank; happens when the first of them arrives.

    Its time becomes earlier if another message arrives before the first that is known.
    """

    def __init__(
        self, scheduler: Scheduler, source: int | None, tag: int | None
    ) -> None:
        sender = "any rank" if source is None else f"rank {source}"
        with_tag = "any tag" if tag is None else f"tag {tag}"
        super().__init__(f"recv from {sender} with {with_tag}")
        self._scheduler = scheduler
        self._source, self._tag = source, tag

    def matches(self, source: int, tag: int) -> bool:
        """Whether it is about messages of this source and tag."""
        return self._source in (None, source) and self._tag in (None, tag)

    def offer(self, at: float) -> None:
        """Takes note of a message that arrives at a time."""
        if self.time is None or at < self.time:
            self._scheduler.bring_forward(self, at)

    def may_be_earlier(self) -> bool:
        return True


class Channel:
    """The messages from one rank to another with one tag, in order."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._sent: collections.deque[tuple[Array, SendEvent]] = collections.deque()
        self._posted: collections.deque[tuple[Array, ReceiveEvent]] = (
            collections.deque()
        )

    def send(self, xs: Sequence[Array], send: SendEvent) -> None:
        """Adds copies of arrays of bytes."""
        self._sent.extend((x.copy(), send) for x in xs)
        send.unbuffered = sum(x.nbytes > _EAGER_BYTES for x in xs)
        if not send.unbuffered:
            self._scheduler.complete(send, send.arrival)
        self._match()

    def receive(self, ys: Sequence[Array], receive: ReceiveEvent) -> None:
        """Adds arrays of bytes to receive into."""
        self._posted.extend((y, receive) for y in ys)
        self._match()

    def arrival(self) -> float | None:
        """The time at which the next message arrives; None if there is none."""
        return self._sent[0][1].arrival if self._sent else None

    def is_empty(self) -> bool:
        """Whether every message has been received."""
        return not self._sent and not self._posted

    def _match(self) -> None:
        while self._sent and self._posted:
            y, receive = self._posted.popleft()
            if receive.is_cancelled:
                continue
            part, send = self._sent.popleft()
            receive.take(y, part, send)
            if receive.missing == 0:
                self._scheduler.complete(receive, receive.arrival)
            if part.nbytes > _EAGER_BYTES:
                send.unbuffered -= 1
                send.ready_at = max(send.ready_at, receive.posted_at)
                if send.unbuffered == 0:
                    self._scheduler.complete(send, send.ready_at)
