"""The interface of the compiled communicator for simulated ranks."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from renga import _communicators
from renga.communicators.array_communicator import checked_rank
from renga.communicators.communicator import Array
from renga.communicators.transport.simulated import costs
from renga.communicators.transport.simulated.machine import Machine
from renga.communicators.transport.traffic import Traffic

# Reductions of `count` equal arrays; max, min and mean return the array itself.
_REDUCTIONS_OF_EQUALS = {
    "sum": lambda x, count: x * x.dtype.type(count),
    "prod": lambda x, count: x**count,
}


class SimulatedNative:
    """Rank ``rank`` of ``size``; all others hold the same arrays."""

    def __init__(
        self, rank: int, size: int, machine: Machine, parent: Traffic | None
    ) -> None:
        self.machine = machine
        self.traffic = Traffic(parent=parent)
        self.rank, self.size = rank, size
        self.intra_size = min(machine.intra_size, size)
        self.intra_rank = rank % self.intra_size
        self.inter_rank = rank // self.intra_size
        self.inter_size = size // self.intra_size
        self._messages: dict[int, collections.deque[Array]] = {}

    shares_memory = False

    def all_reduce(
        self, xs: list[Any], ys: list[Any], op: str, dtype: str, wait: bool = True
    ) -> Any:
        _communicators.all_reduce_call(xs, ys, op, dtype)
        for x, y in zip(xs, ys):
            y[...] = self._reduced(x, op)
        cost = costs.all_reduce(self.machine, self.size, xs, dtype)
        return self._count("all_reduce", cost, wait)

    def all_reduce_in_place(self, x: Any, op: str) -> bool:
        if not isinstance(x, np.ndarray):
            return False
        self.all_reduce([x], [x], op, "")
        return True

    def _reduced(self, x: Array, op: str) -> Array:
        return (
            _REDUCTIONS_OF_EQUALS[op](x, self.size)
            if op in _REDUCTIONS_OF_EQUALS
            else x
        )

    def reduce_scatter(self, x: Any, y: Any, op: str, wait: bool = True) -> Any:
        _communicators.reduce_scatter_call(x, y, op, self.size)
        y[...] = self._reduced(x[self.rank], op)
        return self._count_all_to_all("reduce_scatter", y.nbytes, wait)

    def all_gather(self, x: Any, y: Any, wait: bool = True) -> Any:
        _communicators.all_gather_call(x, y, self.size)
        y[...] = x
        return self._count_all_to_all("all_gather", x.nbytes, wait)

    def all_to_all(self, x: Any, y: Any, wait: bool = True) -> Any:
        _communicators.all_to_all_call(x, y, self.size)
        y[...] = x
        return self._count_all_to_all("all_to_all", x[0].nbytes, wait)

    def all_to_allv(
        self,
        name: str,
        root: int | None,
        sent: list[Any],
        received: list[Any],
        wait: bool = True,
    ) -> Any:
        """Receives what is sent to each rank if the shapes match, zeros otherwise."""
        for x, y in zip(sent, received):
            if x is not None and y is not None:
                y[...] = x if x.shape == y.shape else 0
        sizes = [0 if x is None else x.nbytes for x in sent]
        sizes[self.rank] = 0
        return self._count_all_to_all(name, sum(sizes) // max(1, self.size - 1), wait)

    def broadcast(
        self, x: Any, root: int, wait: bool = True, name: str = "broadcast"
    ) -> Any:
        is_root = self.rank == checked_rank(name, root, self.size)
        cost = costs.broadcast(self.machine, self.size, x.nbytes, is_root)
        return self._count("broadcast", cost, wait)

    def barrier(self) -> None:
        self._count_all_to_all("barrier", 0, True)

    def _count_all_to_all(self, name: str, size: int, wait: bool) -> Any:
        return self._count(name, costs.all_to_all(self.machine, self.size, size), wait)

    def _count(self, name: str, cost: costs.Cost, wait: bool) -> Any:
        self.traffic.add(name, *cost, wait)
        return None if wait else CompleteWork()

    def send(self, xs: list[Any], to: int, tag: int, wait: bool = True) -> Any:
        checked_rank("send", to, self.size)
        same_node = to // self.intra_size == self.inter_rank
        queue = self._messages.setdefault(tag, collections.deque())
        seconds = 0.0
        for x in xs:
            queue.append(x.copy())
            seconds += self.machine.message(x.nbytes, same_node)
        size = sum(x.nbytes for x in xs)
        return self._count("send", costs.Cost(len(xs), size, seconds), wait)

    def receive(
        self,
        xs: list[Any],
        source: int,
        tag: int,
        wait: bool = True,
        expected: Array | None = None,
    ) -> Any:
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
        return self._count("recv", costs.Cost(0, 0, 0.0), wait)

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

    def window(self, size: int) -> Array:
        return np.empty(size, np.uint8)

    def copy_to_window(self, xs: list[Array]) -> list[Array]:
        return []

    def window_layout(self, xs: list[Array]) -> int:
        return 0

    def set_algorithm(self, name: str) -> None:
        """Has no effect: the fastest is always predicted."""
        _communicators.check_algorithm(name)

    def abort(self, code: int) -> None:
        raise SystemExit(code)


class CompleteWork:
    """Work that is complete at once."""

    def test(self) -> bool:
        return True

    def wait(self, timeout_seconds: float) -> None:
        return None
