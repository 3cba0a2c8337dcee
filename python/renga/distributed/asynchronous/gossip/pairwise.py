"""Gossip in pairs, without waiting: AD-PSGD."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy

from renga.distributed.asynchronous.asynchronous_optimizer import seconds
from renga.distributed.asynchronous.gossip.random_gossip import RandomGossip

if TYPE_CHECKING:
    from renga.communicators.communicator import Array

_REQUEST, _REPLY, _SHUTDOWN = 0, 1, 2


class PairwiseOptimizer(RandomGossip):
    """After each update, answers its neighbours and asks one of them for an average.

    A rank sends x to a neighbour, which replies with its own y and moves to
    ``y + (x - y) / 2``; when the reply comes, the first moves by ``(y - x) / 2``,
    wherever it has got to. So sums of parameters are kept and no rank ever waits for
    another; that is why the graph need not be bipartite, as in the paper.

    Source: Lian et al., Asynchronous decentralized parallel stochastic gradient
    descent, ICML 2018.
    """

    # The rank of which a reply is due, what it was sent, and when.
    _asked: tuple[int, list[Array], float] | None = None

    def _update(self, forward: Callable[[], Any] | None) -> None:
        self._compute_gradients(forward)
        self.actual_optimizer.update()
        while self._take(0):
            pass
        self._check_reply()
        candidates = self._candidates()
        if self._asked is None and candidates:
            rank = self._draw(candidates)
            sent = self._packed.pack()
            self._send(rank, [_kind(_REQUEST), *sent])
            self._asked = rank, sent, seconds(self._comm)

    def _handle(self, source: int, message: tuple[Array, ...]) -> None:
        kind, *xs = message
        if kind[0] == _SHUTDOWN:
            self._gone.add(source)
        elif kind[0] == _REQUEST:
            own = self._packed.pack()
            self._send(source, [_kind(_REPLY), *own])
            self._packed.add([(x - y) / 2 for x, y in zip(xs, own)])
        elif self._asked is not None and self._asked[0] == source:
            sent = self._asked[1]
            self._packed.add([(y - x) / 2 for x, y in zip(sent, xs)])
            self._asked = None

    def _check_reply(self) -> None:
        """Loses the rank whose reply is overdue."""
        if self._asked is not None:
            rank, _, asked_at = self._asked
            if seconds(self._comm) - asked_at > self._timeout:
                self._lose(rank)
                self._asked = None

    def join(self) -> None:
        """Answers the other ranks until all have joined; every rank calls it."""
        while self._asked is not None:
            if not self._take(self._timeout):
                self._lose(self._asked[0])
                self._asked = None
        self._leave(_kind(_SHUTDOWN))


def _kind(kind: int) -> Array:
    return numpy.array([kind])
