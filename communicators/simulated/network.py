"""What the compiled communicator offers, for ranks that are not there."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from renga.communicators.simulated.machine import Machine
from renga.communicators.simulated.traffic import Traffic

_OF_EQUALS = {
    "sum": lambda x, count: x * x.dtype.type(count),
    "prod": lambda x, count: x**count,
}


class Network:
    """Rank ``rank`` of ``size``; all others hold what it holds."""

    def __init__(self, rank: int, size: int, machine: Machine) -> None:
        self.machine = machine
        self.traffic = Traffic()
        self.rank, self.size = rank, size
        self.intra_size = min(machine.intra_size, size)
        self.intra_rank = rank % self.intra_size
        self.inter_rank = rank // self.intra_size
        self.inter_size = size // self.intra_size
        self._sent: dict[int, collections.deque[np.ndarray]] = {}

    def all_reduce(
        self, xs: list[Any], ys: list[Any], op: str, wire: str, wait: bool = True
    ) -> Any:
        width = 2 if wire == "bfloat16" else np.dtype(wire or xs[0].dtype).itemsize
        halves = width == 2 and np.issubdtype(xs[0].dtype, np.floating)
        size = sum(x.size for x in xs) * width
        for x, y in zip(xs, ys):
            y[...] = self._reduced(x, op)
        sent = 2 * (self.size - 1) * size // self.size
        seconds = self.machine.all_reduce(self.size, size, halves)
        self.traffic.add("all_reduce", 2 * (self.size - 1), sent, seconds, wait)
        return None if wait else Over()

    def all_reduce_in_place(self, x: Any, op: str) -> bool:
        if not isinstance(x, np.ndarray):
            return False
        self.all_reduce([x], [x], op, "")
        return True

    def _reduced(self, x: np.ndarray, op: str) -> np.ndarray:
        return _OF_EQUALS[op](x, self.size) if op in _OF_EQUALS else x

    def reduce_scatter(self, x: Any, y: Any, op: str, wait: bool = True) -> Any:
        y[...] = self._reduced(x[self.rank], op)
        return self._to_all("reduce_scatter", y.nbytes, wait)

    def all_gather(self, x: Any, ys: list[Any], wait: bool = True) -> Any:
        for y in ys:
            y[...] = x
        return self._to_all("all_gather", x.nbytes, wait)

    def exchange(
        self, name: str, sent: list[Any], received: list[Any], wait: bool = True
    ) -> Any:
        """What goes to a rank is what comes from there, if the shapes are the same."""
        for x, y in zip(sent, received):
            if x is not None and y is not None:
                y[...] = x if x.shape == y.shape else 0
        sizes = [0 if x is None else x.nbytes for x in sent]
        sizes[self.rank] = 0
        return self._to_all(name, sum(sizes) // max(1, self.size - 1), wait)

    def broadcast(self, x: Any, root: int, wait: bool = True) -> Any:
        seconds = self.machine.tree(self.size, x.nbytes)
        sends = self.size.bit_length() - 1 if self.rank == root else 0
        self.traffic.add("broadcast", sends, sends * x.nbytes, seconds, wait)
        return None if wait else Over()

    def barrier(self) -> None:
        self._to_all("barrier", 0, True)

    def _to_all(self, name: str, size: int, wait: bool) -> Any:
        others = self.size - 1
        seconds = self.machine.to_all(self.size, size)
        self.traffic.add(name, others, others * size, seconds, wait)
        return None if wait else Over()

    def send(self, xs: list[Any], to: int, tag: int, wait: bool = True) -> Any:
        same_node = to // self.intra_size == self.inter_rank
        queue = self._sent.setdefault(tag, collections.deque())
        seconds = 0.0
        for x in xs:
            queue.append(x.copy())
            seconds += self.machine.message(x.nbytes, same_node)
        size = sum(x.nbytes for x in xs)
        self.traffic.add("send", len(xs), size, seconds, wait)
        return None if wait else Over()

    def receive(self, xs: list[Any], source: int, tag: int, wait: bool = True) -> Any:
        """What this rank sent with the tag: its time was the sending's."""
        for x in xs:
            queue = self._sent.get(tag)
            if not queue or queue[0].nbytes != x.nbytes:
                raise RuntimeError(
                    f"recv: a simulated rank receives what it has sent itself with tag "
                    f"{tag}; expected {x.nbytes} bytes"
                )
            x[...] = queue.popleft().reshape(x.shape)
        self.traffic.add("recv", 0, 0, 0.0, wait)
        return None if wait else Over()

    def window(self, size: int) -> np.ndarray:
        return np.empty(size, np.uint8)

    def set_algorithm(self, name: str) -> None:
        """The fastest is always predicted."""

    def abort(self, code: int) -> None:
        raise SystemExit(code)


class Over:
    """Work that took no time."""

    def test(self) -> bool:
        return True

    def wait(self, seconds: float) -> None:
        return None
