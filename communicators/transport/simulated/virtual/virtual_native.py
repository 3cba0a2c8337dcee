"""The interface of the compiled communicator for virtual ranks."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Callable

import numpy as np

from renga import _communicators
from renga.communicators.array_communicator import checked_rank
from renga.communicators.communicator import Array
from renga.communicators.messages import headers
from renga.communicators.transport.simulated import costs
from renga.communicators.transport.simulated.costs import Cost
from renga.communicators.transport.simulated.virtual.bits import (
    received_array,
    sent_array,
)
from renga.communicators.transport.simulated.virtual.group import Collective, Group
from renga.communicators.transport.simulated.virtual.messages import Receive, Send
from renga.communicators.transport.simulated.virtual.virtual_thread import VirtualThread
from renga.communicators.transport.simulated.virtual.virtual_work import VirtualWork
from renga.communicators.transport.traffic import Traffic
from renga.variable import as_array

_MAX_TAG = 2**31 - 1


class VirtualNative:
    """Rank ``rank`` of a group; ``thread`` runs it."""

    shares_memory = False

    def __init__(
        self,
        group: Group,
        rank: int,
        thread: VirtualThread,
        traffic: Traffic,
    ) -> None:
        self.thread = thread
        self.traffic = traffic
        self.machine = group.machine
        self.rank, self.size = rank, len(group.members)
        nodes = [group.network.node_of(member) for member in group.members]
        self.intra_size = nodes.count(nodes[rank])
        self.intra_rank = nodes[:rank].count(nodes[rank])
        distinct = list(dict.fromkeys(nodes))
        self.inter_rank, self.inter_size = distinct.index(nodes[rank]), len(distinct)
        self._group = group
        self._collectives = 0

    def all_reduce(
        self, xs: list[Array], ys: list[Array], op: str, dtype: str, wait: bool = True
    ) -> Any:
        call = _communicators.all_reduce_call(xs, ys, op, dtype)
        cost = costs.all_reduce(self.machine, self.size, xs, dtype)

        def execute(collective: Collective) -> float:
            totals = [np.empty(y.shape, y.dtype) for y in ys]
            operands = [operand for operand, _ in collective.operands]
            _communicators.reduce(operands, totals, op, dtype)
            for _, results in collective.operands:
                _copy(totals, results)
            return cost.seconds

        return self._collective(call, cost, (xs, ys), execute, wait)

    def all_reduce_in_place(self, x: Any, op: str) -> bool:
        """False: there is no faster path than ``all_reduce``."""
        return False

    def reduce_scatter(self, x: Array, y: Array, op: str, wait: bool = True) -> Any:
        call = _communicators.reduce_scatter_call(x, y, op, self.size)
        y = as_array(y)
        cost = costs.all_to_all(self.machine, self.size, y.nbytes)

        def execute(collective: Collective) -> float:
            total = np.empty(x.shape, y.dtype)
            operands = [[operand] for operand, _ in collective.operands]
            _communicators.reduce(operands, [total], op, "")
            _copy(total, [result for _, result in collective.operands])
            return cost.seconds

        return self._collective(call, cost, (x, y), execute, wait)

    def all_gather(self, x: Array, y: Array, wait: bool = True) -> Any:
        call = _communicators.all_gather_call(x, y, self.size)
        y = as_array(y)
        cost = costs.all_to_all(self.machine, self.size, x.nbytes)

        def execute(collective: Collective) -> float:
            gathered = np.stack([operand for operand, _ in collective.operands])
            for _, result in collective.operands:
                result[...] = gathered
            return cost.seconds

        return self._collective(call, cost, (x, y), execute, wait)

    def all_gatherv(self, name: str, x: Array, ys: list[Array]) -> None:
        cost = costs.all_to_all(self.machine, self.size, x.nbytes)

        def execute(collective: Collective) -> float:
            operands = [operand.copy() for operand, _ in collective.operands]
            for _, results in collective.operands:
                _copy(operands, results)
            longest = max(operand.nbytes for operand in operands)
            return costs.all_to_all(self.machine, self.size, longest).seconds

        self._collective(name, cost, (x, ys), execute)

    def all_to_all(self, x: Array, y: Array, wait: bool = True) -> Any:
        call = _communicators.all_to_all_call(x, y, self.size)
        y = as_array(y)
        cost = costs.all_to_all(self.machine, self.size, x.nbytes // self.size)

        def execute(collective: Collective) -> float:
            operands = np.stack([operand for operand, _ in collective.operands])
            _copy(operands.swapaxes(0, 1), [y for _, y in collective.operands])
            return cost.seconds

        return self._collective(call, cost, (x, y), execute, wait)

    def all_to_allv(
        self,
        name: str,
        root: int | None,
        sent: list[Array | None],
        received: list[Array | None],
    ) -> None:
        sizes = [
            x.nbytes for r, x in enumerate(sent) if x is not None and r != self.rank
        ]
        cost = Cost(len(sizes), sum(sizes), 0.0)

        def execute(collective: Collective) -> float:
            for source, (xs, _) in enumerate(collective.operands):
                for (_, ys), x in zip(collective.operands, xs):
                    if x is not None and ys[source] is not None:
                        ys[source][...] = x
            return self._exchange_seconds([xs for xs, _ in collective.operands])

        call = name if root is None else f"{name} from rank {root}"
        self._collective(call, cost, (sent, received), execute)

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

    def broadcast(
        self, x: Array, root: int, wait: bool = True, name: str = "broadcast"
    ) -> Any:
        root = checked_rank(name, root, self.size)
        is_root = self.rank == root
        x = np.asarray(x) if is_root else x  # others must be able to write into theirs
        call = _communicators.broadcast_call(name, x, root, is_root)
        x = as_array(x)
        cost = costs.broadcast(self.machine, self.size, x.nbytes, is_root)

        def execute(collective: Collective) -> float:
            for rank, y in enumerate(collective.operands):
                if rank != root:
                    y[...] = collective.operands[root]
            return cost.seconds

        return self._collective(call, cost, x, execute, wait)

    def barrier(self) -> None:
        self._synchronize("barrier")

    def _synchronize(self, call: str) -> None:
        cost = costs.all_to_all(self.machine, self.size, 0)
        self._collective(call, cost, None, lambda collective: cost.seconds)

    def split(self, color: int | None, key: int) -> VirtualNative | None:
        if color is not None:
            color = _checked_int32("split", "color", color)
        key = _checked_int32("split", "key", key)
        cost = costs.all_to_all(self.machine, self.size, 12)  # three int32
        group = self._group

        def execute(collective: Collective) -> float:
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
        return VirtualNative(part, rank, self.thread, Traffic(parent=self.traffic))

    def _collective(
        self,
        call: str,
        cost: Cost,
        operand: Any,
        execute: Callable[[Collective], float],
        wait: bool = True,
    ) -> Any:
        collective = self._join(call, cost, operand, execute, wait)
        return None if wait else VirtualWork(self, collective)

    def _join(
        self,
        call: str,
        cost: Cost,
        operand: Any,
        execute: Callable[[Collective], float],
        wait: bool = True,
    ) -> Collective:
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
            self.traffic.add(name, messages, size, seconds, wait)
        return collective

    def send(
        self, xs: Sequence[Array], to: int, tag: int, wait: bool = True
    ) -> VirtualWork | None:
        """Takes the time of one message with the data, without headers."""
        xs = [sent_array(x) for x in xs]
        to, tag = checked_rank("send", to, self.size), _checked_tag("send", tag)
        size = sum(x.nbytes for x in xs if not headers.is_header(x))
        group, members = self._group, self._group.members
        with self.thread as thread:
            thread.take_turn()
            begin = thread.clock
            arrival = group.network.send(begin, members[self.rank], members[to], size)
            send = Send(f"send to rank {to} with tag {tag}", arrival)
            group.send((self.rank, to, tag), xs, send)
            if wait:
                thread.wait_for(send)
            seconds = (thread.clock if wait else arrival) - begin
            sent = sum(x.nbytes for x in xs)
            self.traffic.add("send", len(xs), sent, seconds, wait)
        return None if wait else VirtualWork(self, send)

    def receive(
        self,
        xs: Sequence[Array],
        source: int,
        tag: int,
        wait: bool = True,
        expected: Array | None = None,
    ) -> VirtualWork | None:
        xs = [received_array(x) for x in xs]
        source, tag = checked_rank("recv", source, self.size), _checked_tag("recv", tag)
        with self.thread as thread:
            begin = thread.clock
            description = f"recv from rank {source} with tag {tag}"
            receive = Receive(description, xs, begin, expected)
            self._group.receive((source, self.rank, tag), xs, receive)
            if wait:
                thread.wait_for(receive)
            self.traffic.add("recv", 0, 0, thread.clock - begin, wait)
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
            self.traffic.add_wait(thread.clock - begin)
            return self._group.arrived(self.rank, event) if found else None

    def window(self, size: int) -> Array:
        self._synchronize(f"window uint8 ({size},)")
        return np.empty(size, np.uint8)

    def copy_to_window(self, xs: list[Array]) -> list[Array]:
        return []

    def window_layout(self, xs: list[Array]) -> int:
        return 0

    def set_algorithm(self, name: str) -> None:
        """Has no effect: the fastest is always predicted."""
        _communicators.check_algorithm(name)

    def abort(self, code: int) -> None:
        self._group.scheduler.fail(f"rank {self.rank} aborted with code {code}")


def _copy(sources: Any, results: Sequence[Array]) -> None:
    for x, y in zip(sources, results):
        y[...] = x


def _checked_tag(name: str, tag: int) -> int:
    tag = operator.index(tag)
    if not 0 <= tag <= _MAX_TAG:
        raise ValueError(f"{name}: expected a tag in [0, {_MAX_TAG}], got {tag}")
    return tag


def _checked_int32(name: str, what: str, number: int) -> int:
    number = operator.index(number)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f"{name}: expected {what} as a 32-bit integer, got {number}")
    return number
