"""Gossip with a neighbour that is drawn at random, without waiting."""

from __future__ import annotations

import collections

import numpy

from renga.communicators import Communicator, RankFailed
from renga.core.optimizer import GradientMethod
from renga.core.types import Array
from renga.parallel.asynchronous.gossip.gossip_optimizer import GossipOptimizer
from renga.parallel.asynchronous.graphs import Graph


class RandomGossip(GossipOptimizer):
    """Takes messages of any rank when they come, in ``_handle``."""

    _notices: collections.Counter[int]

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
        self._handle(found.source, self._comm.recv(found.source, 0))
        return True

    def _handle(self, source: int, message: tuple[Array, ...]) -> None:
        raise NotImplementedError

    def _leave(self, notice: Array) -> None:
        """Sends a shutdown notice and handles messages until all others have, too."""
        others = set(range(self._comm.size)) - {self._comm.rank}
        for rank in others - self._lost:
            self._send(rank, [notice])
        while waited := others - self._gone - self._lost:
            # They may have waited for a lost rank themselves.
            if not self._take(2 * self._timeout):
                for rank in waited:
                    self._lose(rank)
        # A rank that was faster may have begun, and ended, the next training.
        self._notices -= collections.Counter(others)
