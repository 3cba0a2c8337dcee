"""One of the ranks that are all simulated, with a clock."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Callable

from renga import _communicators
from renga.communicators.array_communicator import checked_rank
from renga.communicators.messages import headers
from renga.communicators.simulated import costs
from renga.communicators.simulated.collectives import CollectiveCall, move
from renga.communicators.simulated.costs import Cost
from renga.communicators.simulated.simulated_rank import SimulatedRank
from renga.communicators.simulated.virtual.group import CollectiveEvent, Group
from renga.communicators.simulated.virtual.messages import ReceiveEvent, SendEvent
from renga.communicators.simulated.virtual.scheduler import Event, VirtualThread
from renga.communicators.transport.traffic import Traffic
from renga.core.types import Array

_MAX_TAG = 2**31 - 1


class VirtualNative(SimulatedRank):
    """Rank ``rank`` of a group; ``thread`` runs it."""

    def __init__(
        self, group: Group, rank: int, thread: VirtualThread, traffic: Traffic
    ) -> None:
        nodes = [group.network.node_of(member) for member in group.members]
        super().__init__(group.machine, rank, nodes, traffic)
        self.thread = thread
        self._group = group
        self._collectives = 0

    def _run(self, call: CollectiveCall, wait: bool) -> VirtualWork | None:
        cost = call.cost

        def execute(joined: CollectiveEvent) -> float:
            operands: list[tuple[CollectiveCall, Cost]] = joined.operands
            calls = [each for each, _ in operands]
            if self._group.scheduler.moves:
                move(calls)
            if call.collective == "all_to_allv":
                return self._exchange_seconds([each.xs for each in calls])
            # Ranks may gather different amounts: the slowest counts.
            return max(cost.seconds for _, cost in operands)

        joined = self._join(call.text, cost, (call, cost), execute, wait)
        return None if wait else VirtualWork(self, joined)

    def _exchange_seconds(self, sent: list[list[Array | None]]) -> float:
        """The time of the rank that sends or receives for longest."""
        members, message = self._group.members, self._group.network.message_seconds
        sending, receiving = [0.0] * self.size, [0.0] * self.size
        for source, xs in enumerate(sent):
            for destination, x in enumerate(xs):
                if x is not None:
                    seconds = message(members[source], members[destination], x.nbytes)
                    sending[source] += seconds
                    receiving[destination] += seconds
        return max(*sending, *receiving)

    def barrier(self) -> None:
        self._synchronize("barrier")

    def _synchronize(self, call: str) -> None:
        cost = costs.all_to_all(self.machine, self.size, 0)
        self._join(call, cost, None, lambda collective: cost.seconds)

    def split(self, color: int | None, key: int) -> VirtualNative | None:
        cost = costs.all_to_all(self.machine, self.size, 12)  # three int32
        group = self._group

        def execute(collective: CollectiveEvent) -> float:
            members: dict[int, list[int]] = {}
            requests = zip(collective.operands, group.members)
            for (color, _), member in sorted(requests, key=lambda item: item[0][1]):
                members.setdefault(color, []).append(member)
            collective.result = {
                color: Group(group.scheduler, group.network, of_color)
                for color, of_color in members.items()
            }
            return cost.seconds

        collective = self._join("split", cost, (color, key), execute)
        if color is None:
            return None
        part: Group = collective.result[color]
        rank = part.members.index(self.thread.number)
        return VirtualNative(part, rank, self.thread, Traffic(parent=self.counts))

    def _join(
        self,
        call: str,
        cost: Cost,
        operand: Any,
        execute: Callable[[CollectiveEvent], float],
        wait: bool = True,
    ) -> CollectiveEvent:
        """Calls a collective, and waits for it if ``wait``."""
        with self.thread as thread:
            thread.take_turn()
            self._collectives += 1
            begin = thread.clock
            collective = self._group.join(
                self._collectives, self.rank, call, operand, execute, begin
            )
            if wait:
                thread.wait_for(collective)
            seconds = thread.clock - begin if wait else cost.seconds
            name, messages, size = call.split()[0], cost.messages, cost.bytes
            self.counts.add(name, messages, size, seconds, wait)
        return collective

    def send(
        self, xs: Sequence[Array], to: int, tag: int, wait: bool = True
    ) -> VirtualWork | None:
        """Takes the time of one message with the data, without headers."""
        xs = [_communicators.sent_bytes(x) for x in xs]
        to, tag = checked_rank("send", to, self.size), _checked_tag("send", tag)
        size = sum(x.nbytes for x in xs if not headers.is_header(x))
        group, members = self._group, self._group.members
        with self.thread as thread:
            thread.take_turn()
            begin = thread.clock
            arrival = group.network.send(begin, members[self.rank], members[to], size)
            send = SendEvent(f"send to rank {to} with tag {tag}", arrival)
            group.send((self.rank, to, tag), xs, send)
            if wait:
                thread.wait_for(send)
            seconds = (thread.clock if wait else arrival) - begin
            sent = sum(x.nbytes for x in xs)
            self.counts.add("send", len(xs), sent, seconds, wait)
        return None if wait else VirtualWork(self, send)

    def receive(
        self,
        xs: Sequence[Array],
        source: int,
        tag: int,
        wait: bool = True,
        expected: Array | None = None,
    ) -> VirtualWork | None:
        xs = [_communicators.received_bytes(x) for x in xs]
        source, tag = checked_rank("recv", source, self.size), _checked_tag("recv", tag)
        with self.thread as thread:
            begin = thread.clock
            description = f"recv from rank {source} with tag {tag}"
            receive = ReceiveEvent(description, xs, begin, expected)
            self._group.receive((source, self.rank, tag), xs, receive)
            if wait:
                thread.wait_for(receive)
            self.counts.add("recv", 0, 0, thread.clock - begin, wait)
        return None if wait else VirtualWork(self, receive)

    def probe(
        self, source: int | None, tag: int | None, seconds: float | None
    ) -> tuple[int, int] | None:
        if source is not None:
            source = checked_rank("recv", source, self.size)
        if tag is not None:
            tag = _checked_tag("recv", tag)
        with self.thread as thread:
            begin = thread.clock
            thread.take_turn()
            event = self._group.arrival(self.rank, source, tag)
            if seconds == 0:
                found = thread.test(event)
            else:
                found = thread.wait_for(event, math.inf if seconds is None else seconds)
            self.counts.add_wait(thread.clock - begin)
            return self._group.arrived(self.rank, event) if found else None

    def window(self, size: int) -> Array:
        self._synchronize(f"window uint8 ({size},)")
        return super().window(size)

    def abort(self, code: int) -> None:
        self._group.scheduler.fail(f"rank {self.rank} aborted with code {code}")


def _checked_tag(name: str, tag: int) -> int:
    tag = operator.index(tag)
    if not 0 <= tag <= _MAX_TAG:
        raise ValueError(f"{name}: expected a tag in [0, {_MAX_TAG}], got {tag}")
    return tag


class VirtualWork:
    """The interface of the compiled Work, for an event of a virtual rank."""

    def __init__(self, native: VirtualNative, event: Event) -> None:
        self._native = native
        self._thread = native.thread
        self._event = event

    def test(self) -> bool:
        with self._thread:
            return self._thread.test(self._event)

    def wait(self, timeout_seconds: float) -> None:
        with self._thread:
            begin = self._thread.clock
            try:
                done = self._thread.wait_for(self._event, timeout_seconds or math.inf)
            finally:
                self._native.counts.add_wait(self._thread.clock - begin)
        if not done:
            raise TimeoutError(
                f"{self._event.describe()}: not complete after {timeout_seconds:g} s "
                f"on rank {self._native.rank}"
            )

    def __del__(self) -> None:
        # A message that arrives later is for another receive.
        if isinstance(self._event, ReceiveEvent):
            self._event.is_cancelled = True
