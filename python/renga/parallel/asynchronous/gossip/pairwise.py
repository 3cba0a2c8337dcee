"""Gossip in pairs, without waiting: AD-PSGD."""

from __future__ import annotations

from typing import Any, Callable

import numpy

from renga.core.types import Array
from renga.parallel.asynchronous.gossip.random_gossip import RandomGossip

_REQUEST, _REPLY, _SHUTDOWN = 0, 1, 2


class PairwiseOptimizer(RandomGossip):
    """After each update, answers its neighbours and asks one of them for an average.

    A rank sends x to a neighbour, which moves from its own y to ``y + (x - y) / 2`` and
    replies with the move; when it comes, the first moves by as much in the opposite
    direction, wherever it has got to. So sums of parameters are kept and no rank ever
    waits for another; that is why the graph need not be bipartite, as in the paper.

    Ranks of one node have x, then the move, in memory that they share, until a rank is
    lost, which might yet write there.

    Source: Lian et al., Asynchronous decentralized parallel stochastic gradient
    descent, ICML 2018.
    """

    # The rank of which a reply is due, and when it was asked.
    _asked: tuple[int, float] | None = None
    # These are the places, by rank, where its x is while it asks; there is none if the
    # ranks do not share memory.
    _shared: Any = ()

    def _after_begin(self, resumes: bool) -> None:
        comm: Any = self._comm
        flats = self._packed.pack()
        copies = []
        if all(isinstance(x, numpy.ndarray) for x in flats):
            copies = comm.copy_to_window(flats)
        self._shared = [
            [comm.window_of_peer(x, rank) for x in copies]
            for rank in range(comm.size if copies else 0)
        ]

    def _update(self, forward: Callable[[], Any] | None) -> None:
        self._compute_gradients(forward)
        self._update_alone()
        while self._take(0):
            pass
        self._check_reply()
        candidates = self._candidates()
        if self._asked is None and candidates:
            self._ask(self._draw(candidates))

    def _ask(self, rank: int) -> None:
        sent: list[Array] = []
        if self._shared and not self._lost:
            self._packed.pack_into(self._shared[self._comm.rank])
        else:
            sent = self._packed.pack()
        self._send(rank, [_kind(_REQUEST), *sent])
        self._asked = rank, self._comm.clock

    def _handle(self, source: int, message: tuple[Array, ...]) -> None:
        kind, *xs = message
        if kind[0] == _SHUTDOWN:
            self._notices[source] += 1
        elif kind[0] == _REQUEST:
            self._packed.move(0.5, self._parameters(source, xs))
            self._send(source, [_kind(_REPLY), *xs])
        elif self._asked is not None and self._asked[0] == source:
            self._packed.subtract(self._parameters(self._comm.rank, xs))
            self._asked = None

    def _parameters(self, rank: int, sent: list[Array]) -> list[Array]:
        """Those in a message; without any, where the rank that asked has its own."""
        return sent if sent or not self._shared else self._shared[rank]

    def _check_reply(self) -> None:
        """Loses the rank whose reply is overdue."""
        if self._asked is not None:
            rank, asked_at = self._asked
            if self._comm.clock - asked_at > self._timeout:
                self._lose(rank)
                self._asked = None

    def join(self) -> None:
        """Answers the other ranks until all have joined; every rank calls it."""
        if not self._begin_to_join():
            return
        while self._asked is not None:
            if not self._take(self._timeout):
                self._lose(self._asked[0])
                self._asked = None
        self._leave(_kind(_SHUTDOWN))


def _kind(kind: int) -> Array:
    return numpy.array([kind])
