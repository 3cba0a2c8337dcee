"""What the virtual ranks of one communicator share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

from renga import _communicators
from renga.communicators.simulated.virtual.messages import (
    Arrival,
    Channel,
    ReceiveEvent,
    SendEvent,
)
from renga.communicators.simulated.virtual.network import VirtualNetwork
from renga.communicators.simulated.virtual.scheduler import Event, Scheduler
from renga.core.types import Array


class CollectiveEvent(Event):
    """A collective of ``size`` ranks, which begins when all of them have called it."""

    def __init__(self, size: int) -> None:
        super().__init__("")
        self.operands: list[Any] = [None] * size
        self.result: Any = None
        self._calls = [""] * size
        self._sites = [""] * size
        self._missing = size

    def join(self, rank: int, call: str, site: str, operand: object) -> bool:
        """Adds the call of one rank; whether it is the last."""
        self.description = call
        self._calls[rank], self._sites[rank] = call, site
        self.operands[rank] = operand
        self._missing -= 1
        return self._missing == 0

    def compare(self) -> bool:
        """Whether the ranks' calls are the same; otherwise all of them fail."""
        first = self._calls[0]
        for r, call in enumerate(self._calls):
            if call != first:
                self.mismatch = (
                    f"{first.split()[0]}: expected the same call on every rank, got "
                    f"{first} at {self._sites[0]} on rank 0 and {call} at "
                    f"{self._sites[r]} on rank {r}"
                )
                return False
        return True

    def describe(self) -> str:
        """The call, and which ranks have not called it."""
        missing = ", ".join(str(r) for r, call in enumerate(self._calls) if not call)
        rest = f", not called by rank {missing}" if missing else ""
        return self.description + rest


class Group:
    """A group of ranks; ``members`` are their numbers among all."""

    def __init__(
        self, scheduler: Scheduler, network: VirtualNetwork, members: Sequence[int]
    ) -> None:
        self.scheduler = scheduler
        self.network = network
        self.members = members
        self.machine = network.machine_of(members)
        # Channels are by destination, then by source and tag.
        self._channels: list[dict[tuple[int, int], Channel]] = [{} for _ in members]
        self._arrivals: list[dict[tuple[int | None, int | None], Arrival]] = [
            {} for _ in members
        ]
        self._collectives: dict[int, CollectiveEvent] = {}  # by their sequence numbers

    def send(
        self, route: tuple[int, int, int], xs: Sequence[Array], send: SendEvent
    ) -> None:
        """Sends arrays; the route is the source, the destination and the tag."""
        channel = self._channel(route)
        channel.send(xs, send)
        self._keep(route, channel)
        arrival = channel.arrival()
        if arrival is not None:
            source, destination, tag = route
            for event in self._arrivals[destination].values():
                if event.matches(source, tag):
                    event.offer(arrival)

    def receive(
        self, route: tuple[int, int, int], ys: Sequence[Array], receive: ReceiveEvent
    ) -> None:
        """Receives into arrays, now or as soon as they are sent."""
        channel = self._channel(route)
        channel.receive(ys, receive)
        self._keep(route, channel)

    def _channel(self, route: tuple[int, int, int]) -> Channel:
        source, destination, tag = route
        found = self._channels[destination].get((source, tag))
        return found or Channel(self.scheduler)

    def _keep(self, route: tuple[int, int, int], channel: Channel) -> None:
        source, destination, tag = route
        if channel.is_empty():  # tags may be used once
            self._channels[destination].pop((source, tag), None)
        else:
            self._channels[destination][source, tag] = channel

    def arrival(self, rank: int, source: int | None, tag: int | None) -> Arrival:
        """The event of the next message to ``rank``; None stands for any."""
        events = self._arrivals[rank]
        event = events.setdefault((source, tag), Arrival(self.scheduler, source, tag))
        first = self._first(rank, event)
        event.time = None if first is None else first[0]
        return event

    def arrived(self, rank: int, event: Arrival) -> tuple[int, int]:
        """The source and tag of the message that has arrived first."""
        first = self._first(rank, event)
        assert first is not None
        return first[1:]

    def _first(self, rank: int, event: Arrival) -> tuple[float, int, int] | None:
        found = (
            (at, source, tag)
            for (source, tag), channel in self._channels[rank].items()
            if event.matches(source, tag) and (at := channel.arrival()) is not None
        )
        return min(found, default=None)

    def join(
        self,
        sequence: int,
        rank: int,
        call: str,
        operand: object,
        execute: Callable[[CollectiveEvent], float],
        now: float,
    ) -> CollectiveEvent:
        """Adds a member's call to the collective with a sequence number.

        ``execute`` of the last member moves the data of all, and returns the seconds
        that the collective takes.
        """
        size = len(self.members)
        collective = self._collectives.setdefault(sequence, CollectiveEvent(size))
        if collective.join(rank, call, _communicators.call_site(), operand):
            del self._collectives[sequence]
            end = now
            if collective.compare():
                seconds = execute(collective)
                end = self.network.collective(now, self.members, seconds)
            self.scheduler.complete(collective, end)
            collective.operands.clear()
        return collective
