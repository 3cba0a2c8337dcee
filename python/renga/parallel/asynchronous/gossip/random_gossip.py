"""Gossip with neighbours that are drawn at random, without waiting."""

from __future__ import annotations

import collections
from typing import Any, Callable

import numpy

from renga.communicators import Communicator, RankFailed
from renga.core.optimizer import GradientMethod
from renga.core.serializer import AbstractSerializer
from renga.core.types import Array
from renga.parallel.asynchronous.gossip.gossip_optimizer import GossipOptimizer
from renga.parallel.asynchronous.graphs import Graph


class RandomGossip(GossipOptimizer):
    """Takes messages of any rank when they come, in ``_handle``.

    An empty message is the last one of a rank before all ranks meet.
    """

    _notices: collections.Counter[int]
    _marked: set[int]

    def __init__(
        self,
        actual_optimizer: GradientMethod,
        communicator: Communicator,
        graph: Graph,
        timeout: float,
        seed: int,
    ) -> None:
        super().__init__(actual_optimizer, communicator, graph, timeout)
        rank, size = communicator.rank, communicator.size
        vars(self).update(
            _neighbours=graph.neighbours(rank, size),
            _random=numpy.random.RandomState([seed, rank]),
            _notices=collections.Counter(),  # of shutdown, by rank
            _marked=set(),  # ranks of which the empty message has come
        )

    @property
    def _gone(self) -> set[int]:
        """The ranks whose shutdown notice has come: they take no more messages."""
        return set(+self._notices)

    def _candidates(self) -> list[int]:
        """The neighbours that still take messages."""
        return [r for r in self._neighbours if r not in self._lost | self._gone]

    def _draw(self, candidates: list[int]) -> int:
        i: int = self._random.randint(len(candidates))
        return candidates[i]

    def _take(self, timeout: float | None) -> bool:
        """Handles one message; whether there was one within ``timeout`` seconds."""
        try:
            found = self._comm.probe(tag=0, timeout=timeout)
        except RankFailed:  # all others have exited
            return False
        if found is None:
            return False
        message = self._comm.recv(found.source, 0)
        if message:
            self._handle(found.source, message)
        else:
            self._marked.add(found.source)
        return True

    def _take_until_none_of(
        self, waited: Callable[[], set[int]], timeout: float
    ) -> None:
        """Handles messages until no rank is waited for, or has been lost."""
        while ranks := waited() - self._lost:
            if not self._take(timeout):
                for rank in ranks:
                    self._lose(rank)

    def _owing(self) -> set[int]:
        """The ranks that have not answered this one yet."""
        return set()

    def _meet_all(self) -> None:
        """Takes what is on its way to this rank."""
        super()._meet_all()
        others = set(range(self._comm.size)) - {self._comm.rank}
        for rank in others:
            self._send(rank, [])
        self._take_until_none_of(
            lambda: others - self._marked | self._owing(), self._timeout
        )
        self._marked.clear()

    def _handle(self, source: int, message: tuple[Array, ...]) -> None:
        raise NotImplementedError

    def _leave(self, notice: Array) -> None:
        """Sends a shutdown notice and handles messages until all others have, too."""
        others = set(range(self._comm.size)) - {self._comm.rank}
        for rank in others - self._lost:
            self._send(rank, [notice])
        # They may have waited for a lost rank themselves.
        self._take_until_none_of(lambda: others - self._gone, 2 * self._timeout)
        # A rank that was faster may have begun, and ended, the next training.
        self._notices -= collections.Counter(others)


class GoSGDOptimizer(RandomGossip):
    """After each update, sends itself to a neighbour with some probability.

    A rank has a weight a, of which it sends half with its parameters x; the receiver j
    takes ``x_j = (a_j x_j + a x) / (a_j + a)`` and adds the weight to its own. The
    weights and those on their way sum to 1.

    Source: Blot et al., Gossip training for deep learning, arXiv 1611.09726.
    """

    _weight: float

    def __init__(
        self,
        actual_optimizer: GradientMethod,
        communicator: Communicator,
        graph: Graph,
        timeout: float,
        seed: int,
        probability: float,
    ) -> None:
        super().__init__(actual_optimizer, communicator, graph, timeout, seed)
        vars(self).update(_probability=probability, _weight=1 / communicator.size)

    @property
    def weight(self) -> float:
        """This rank's weight a."""
        return self._weight

    def _after_begin(self, resumes: bool) -> None:
        if not resumes:
            self._weight = 1 / self._comm.size
        self._weight = self._scaled_to(1.0, self._weight)

    def _update(self, forward: Callable[[], Any] | None) -> None:
        while self._take(0):
            pass
        self._compute_gradients(forward)
        self._update_alone()
        candidates = self._candidates()
        if candidates and self._random.uniform() < self._probability:
            self._weight /= 2
            rank = self._draw(candidates)
            self._send(rank, [numpy.array([self._weight]), *self._packed.pack()])

    def _handle(self, source: int, message: tuple[Array, ...]) -> None:
        weight, *xs = message
        if not xs:
            self._notices[source] += 1
            return
        total = self._weight + float(weight[0])
        self._packed.move(float(weight[0]) / total, xs)
        self._weight = total

    def _join(self) -> None:
        """Takes the other ranks' messages until all have joined."""
        if self._begin_to_join():
            self._leave(numpy.zeros(1))

    def _average(self) -> list[Array]:
        """The mean of x weighted by a."""
        return self._weighted_mean(self._weight)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the actual optimizer and the weight."""
        super().serialize(serializer)
        self._weight = serializer["gossip"]("weight", self._weight)


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

    def _lose(self, rank: int) -> None:
        super()._lose(rank)
        if rank in self._owing():
            self._asked = None

    def _owing(self) -> set[int]:
        return set() if self._asked is None else {self._asked[0]}

    def _join(self) -> None:
        """Answers the other ranks until all have joined; every rank calls it."""
        if not self._begin_to_join():
            return
        self._take_until_none_of(self._owing, self._timeout)
        self._leave(_kind(_SHUTDOWN))


def _kind(kind: int) -> Array:
    return numpy.array([kind])
