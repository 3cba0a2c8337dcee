"""One rank of many that do not exist."""

from __future__ import annotations

import collections
from collections.abc import Sequence

from renga.communicators.array_communicator import checked_rank
from renga.communicators.native import NativeWork
from renga.communicators.simulated import costs
from renga.communicators.simulated.collectives import CollectiveCall
from renga.communicators.simulated.costs import Cost
from renga.communicators.simulated.machine import Machine
from renga.communicators.simulated.simulated_rank import SimulatedRank
from renga.communicators.transport.traffic import Traffic
from renga.core.types import Array

# Reductions of `count` equal arrays; max, min and mean return the array itself.
_REDUCTIONS_OF_EQUALS = {
    "sum": lambda x, count: x * x.dtype.type(count),
    "prod": lambda x, count: x**count,
}


class SimulatedNative(SimulatedRank):
    """Rank ``rank`` of ``size``; all others hold the same arrays."""

    def __init__(
        self, rank: int, size: int, machine: Machine, parent: Traffic | None
    ) -> None:
        width = min(machine.intra_size, size)
        nodes = [r // width for r in range(size)]
        super().__init__(machine, rank, nodes, Traffic(parent=parent))
        self._messages: dict[int, collections.deque[Array]] = {}

    def _run(self, call: CollectiveCall, wait: bool) -> NativeWork | None:
        """Receives what is sent to each rank; zeros where the shapes do not match."""
        cost = call.cost
        if call.collective == "reduce_scatter":
            call.ys[0][...] = self._reduced(call.xs[0][self.rank], call.op)
        elif call.collective == "all_reduce":
            for x, y in zip(call.xs, call.ys):
                y[...] = self._reduced(x, call.op)
        elif call.collective == "all_to_allv":
            for x, y in zip(call.xs, call.ys):
                if x is not None and y is not None:
                    y[...] = x if x.shape == y.shape else 0
            size = cost.bytes // max(1, self.size - 1)
            cost = costs.all_to_all(self.machine, self.size, size)
        else:  # the root's array is that of the others
            for x, y in zip(call.xs, call.ys):
                y[...] = x
        return self._count(call.name, cost, wait)

    def _reduced(self, x: Array, op: str) -> Array:
        reduction = _REDUCTIONS_OF_EQUALS.get(op)
        return x if reduction is None else reduction(x, self.size)

    def barrier(self) -> None:
        self._count("barrier", costs.all_to_all(self.machine, self.size, 0), True)

    def split(self, color: int | None, key: int) -> None:
        """Raises RuntimeError: the colors of the other ranks are not known."""
        raise RuntimeError(
            "simulated: expected split_by, which takes all ranks' colors"
        )

    def _count(self, name: str, cost: Cost, wait: bool) -> NativeWork | None:
        self.counts.add(name, *cost, wait)
        return None if wait else CompleteWork()

    def send(
        self, xs: Sequence[Array], to: int, tag: int, wait: bool = True
    ) -> NativeWork | None:
        checked_rank("send", to, self.size)
        same_node = to // self.intra_size == self.inter_rank
        queue = self._messages.setdefault(tag, collections.deque())
        seconds = 0.0
        for x in xs:
            queue.append(x.copy())
            seconds += self.machine.message(x.nbytes, same_node)
        size = sum(x.nbytes for x in xs)
        return self._count("send", Cost(len(xs), size, seconds), wait)

    def receive(
        self,
        xs: Sequence[Array],
        source: int,
        tag: int,
        wait: bool = True,
        expected: Array | None = None,
    ) -> NativeWork | None:
        """What this rank sent with the tag; its time was counted then.

        Raises:
            RuntimeError: if it has sent nothing of this size, or the first array is
                not ``expected``; the others are not written to then.
        """
        checked_rank("recv", source, self.size)
        for i, x in enumerate(xs):
            queue = self._messages.get(tag)
            if not queue or queue[0].nbytes != x.nbytes:
                raise RuntimeError(
                    f"recv: a simulated rank receives what it has sent itself with tag "
                    f"{tag}; expected {x.nbytes} bytes"
                )
            received = queue.popleft().reshape(x.shape)
            if i == 0 and expected is not None and (received != expected).any():
                raise RuntimeError("recv: the header is not the expected one")
            x[...] = received
        return self._count("recv", Cost(0, 0, 0.0), wait)

    def probe(
        self, source: int | None, tag: int | None, seconds: float | None
    ) -> tuple[int, int] | None:
        """The next message that this rank has sent with the tag, or with any.

        Raises:
            RuntimeError: if there is none and it would be waited for.
        """
        if source is not None:
            checked_rank("recv", source, self.size)
        tags = list(self._messages) if tag is None else [tag]
        for candidate in tags:
            if self._messages.get(candidate):
                return (self.rank if source is None else source), candidate
        if seconds is None:
            raise RuntimeError(
                "recv: a simulated rank receives what it has sent itself; it has sent "
                "no message that matches"
            )
        return None

    def abort(self, code: int) -> None:
        raise SystemExit(code)


class CompleteWork:
    """Work that is complete at once."""

    def test(self) -> bool:
        return True

    def wait(self, timeout_seconds: float) -> None:
        return None
