"""The interface of the compiled communicator for simulated ranks."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np

from renga.communicators.communicator import Array
from renga.communicators.transport.simulated.machine import Machine
from renga.communicators.transport.traffic import Traffic
from renga.utils.type_check import InvalidType

# Reductions of `count` equal arrays; max, min and mean return the array itself.
_REDUCTIONS_OF_EQUALS = {
    "sum": lambda x, count: x * x.dtype.type(count),
    "prod": lambda x, count: x**count,
}


class SimulatedNative:
    """Rank ``rank`` of ``size``; all others hold the same arrays.

    ``traffics`` are its own counts and those of the communicators it was split from.
    """

    def __init__(
        self, rank: int, size: int, machine: Machine, counted_in: Sequence[Traffic]
    ) -> None:
        self.machine = machine
        self.traffics = [Traffic(), *counted_in]
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
        for x, y in zip(xs, ys):
            _check_result("all_reduce", y, x.shape, x.dtype)
        bfloat16 = dtype == "bfloat16"
        itemsize = 2 if bfloat16 else np.dtype(dtype or xs[0].dtype).itemsize
        is_16_bit = itemsize == 2 and np.issubdtype(xs[0].dtype, np.floating)
        size = sum(x.size for x in xs) * itemsize
        for x, y in zip(xs, ys):
            y[...] = self._reduced(x, op)
        sent = 2 * (self.size - 1) * size // self.size
        seconds = self.machine.all_reduce(self.size, size, is_16_bit)
        self._count("all_reduce", 2 * (self.size - 1), sent, seconds, wait)
        return None if wait else CompleteWork()

    def all_reduce_in_place(self, x: Any, op: str) -> bool:
        if not isinstance(x, np.ndarray):
            return False
        self.all_reduce([x], [x], op, "")
        return True

    def _reduced(self, x: Array, op: str) -> Array:
        if op not in ("sum", "mean", "max", "min", "prod"):
            raise ValueError(
                f"all_reduce: expected op sum, mean, max, min or prod, got {op}"
            )
        if op == "mean" and x.dtype.kind not in "fc":
            raise InvalidType(
                f"all_reduce: expected a floating dtype for mean, got {x.dtype}"
            )
        return (
            _REDUCTIONS_OF_EQUALS[op](x, self.size)
            if op in _REDUCTIONS_OF_EQUALS
            else x
        )

    def reduce_scatter(self, x: Any, y: Any, op: str, wait: bool = True) -> Any:
        self._check_rows("reduce_scatter", x)
        _check_result("reduce_scatter", y, x.shape[1:], x.dtype)
        y[...] = self._reduced(x[self.rank], op)
        return self._count_all_to_all("reduce_scatter", y.nbytes, wait)

    def all_gather(self, x: Any, y: Any, wait: bool = True) -> Any:
        _check_result("all_gather", y, (self.size, *x.shape), x.dtype)
        y[...] = x
        return self._count_all_to_all("all_gather", x.nbytes, wait)

    def all_to_all(self, x: Any, y: Any, wait: bool = True) -> Any:
        self._check_rows("all_to_all", x)
        _check_result("all_to_all", y, x.shape, x.dtype)
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
        self._check_rank(name, root)
        seconds = self.machine.broadcast(self.size, x.nbytes)
        sends = self.size.bit_length() - 1 if self.rank == root else 0
        self._count("broadcast", sends, sends * x.nbytes, seconds, wait)
        return None if wait else CompleteWork()

    def barrier(self) -> None:
        self._count_all_to_all("barrier", 0, True)

    def _count_all_to_all(self, name: str, size: int, wait: bool) -> Any:
        others = self.size - 1
        seconds = self.machine.all_to_all(self.size, size)
        self._count(name, others, others * size, seconds, wait)
        return None if wait else CompleteWork()

    def _count(
        self, name: str, messages: int, size: int, seconds: float, wait: bool
    ) -> None:
        for traffic in self.traffics:
            traffic.add(name, messages, size, seconds, wait)

    def send(self, xs: list[Any], to: int, tag: int, wait: bool = True) -> Any:
        self._check_rank("send", to)
        same_node = to // self.intra_size == self.inter_rank
        queue = self._messages.setdefault(tag, collections.deque())
        seconds = 0.0
        for x in xs:
            queue.append(x.copy())
            seconds += self.machine.message(x.nbytes, same_node)
        size = sum(x.nbytes for x in xs)
        self._count("send", len(xs), size, seconds, wait)
        return None if wait else CompleteWork()

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
        self._check_rank("recv", source)
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
        self._count("recv", 0, 0, 0.0, wait)
        return None if wait else CompleteWork()

    def window(self, size: int) -> Array:
        return np.empty(size, np.uint8)

    def copy_to_window(self, xs: list[Array]) -> list[Array]:
        return []

    def window_layout(self, xs: list[Array]) -> int:
        return 0

    def _check_rank(self, name: str, rank: int) -> None:
        if not 0 <= rank < self.size:
            raise ValueError(f"{name}: expected a rank in [0, {self.size}), got {rank}")

    def _check_rows(self, name: str, x: Array) -> None:
        if len(x) != self.size:
            raise InvalidType(
                f"{name}: expected one row for each of {self.size} ranks, "
                f"got shape {x.shape}"
            )

    def set_algorithm(self, name: str) -> None:
        """Has no effect: the fastest is always predicted."""

    def abort(self, code: int) -> None:
        raise SystemExit(code)


def _check_result(name: str, y: Array, shape: tuple[int, ...], dtype: np.dtype) -> None:
    if not isinstance(y, np.ndarray):
        raise TypeError(f"{name}: out: expected a numpy.ndarray, got {type(y)}")
    if y.shape != shape or y.dtype != dtype:
        raise InvalidType(
            f"{name}: expected a result of {dtype} {shape}, got {y.dtype} {y.shape}"
        )


class CompleteWork:
    """Work that is complete at once."""

    def test(self) -> bool:
        return True

    def wait(self, timeout_seconds: float) -> None:
        return None
