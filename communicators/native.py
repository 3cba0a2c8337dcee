"""What the methods of communicators are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from renga.core.types import Array


class NativeWork(Protocol):
    """The compiled ``_communicators.Work``, or that of a simulated rank."""

    def test(self) -> bool:
        """Whether it is complete; raises its error."""

    def wait(self, timeout_seconds: float) -> None:
        """Returns when it is complete; a time-out of 0 is none."""


class Native(Protocol):
    """The compiled ``_communicators.Communicator``, or a simulated rank.

    Methods with a ``wait`` argument return None if they have waited, and a ``Work``
    otherwise. Arguments are positional; timeouts are in seconds.
    """

    rank: int
    size: int
    intra_rank: int
    intra_size: int
    inter_rank: int
    inter_size: int
    shares_memory: bool

    def call(
        self,
        collective: str,
        xs: Sequence[object],
        ys: Sequence[object],
        op: str = "sum",
        communication_dtype: str = "",
        root: int | None = None,
        wait: bool = True,
        called: str = "",
    ) -> NativeWork | None:
        """Runs a collective of the table in ``collectives/collectives.cpp``.

        ``called`` is the method that is made of it, for errors and counts.
        """

    def all_reduce_in_place(self, x: object, op: str) -> bool:
        """Reduces an ndarray with little overhead; False if it has done nothing."""

    def barrier(self) -> None:
        """Returns when every rank has called it."""

    def split(self, color: int | None, key: int) -> Native | None:
        """The group of ranks with the same color, ordered by key."""

    def send(
        self, xs: Sequence[Array], to: int, tag: int, wait: bool = True
    ) -> NativeWork | None:
        """Sends one message for each array."""

    def receive(
        self,
        xs: Sequence[Array],
        source: int,
        tag: int,
        wait: bool = True,
        expected: Array | None = None,
    ) -> NativeWork | None:
        """Receives into arrays; only the first unless that is equal to ``expected``."""

    def probe(
        self, source: int | None, tag: int | None, seconds: float | None
    ) -> tuple[int, int] | None:
        """The source and tag of a message that has arrived; None stands for any."""

    def window(self, size: int) -> Array:
        """Bytes in memory that the ranks of this node share, if they share any."""

    def copy_to_window(self, xs: Sequence[Array]) -> list[Array]:
        """Copies of arrays in a window; none if the ranks share no memory."""

    def window_of_peer(self, x: Array, local_rank: int) -> Array:
        """The array of another rank of this node at the place of ``x``."""

    def window_layout(self, xs: Sequence[Array]) -> int:
        """A number that identifies the places of arrays in windows; 0 if in none."""

    def set_algorithm(self, name: str) -> None:
        """Has reductions send messages by an algorithm; "" for the fastest path."""

    def network(self) -> tuple[float, float]:
        """Latency and seconds per byte of messages."""

    def traffic(self) -> object:
        """Counts of the communication so far."""

    def abort(self, code: int) -> None:
        """Ends all ranks."""
