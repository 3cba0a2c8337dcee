"""Messages between ranks of which some may be lost."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy

from renga.communicators import Communicator, RankFailed
from renga.core.optimizer import GradientMethod
from renga.core.types import Array
from renga.parallel.asynchronous.asynchronous_optimizer import AsynchronousOptimizer
from renga.parallel.asynchronous.graphs import Graph
from renga.parallel.asynchronous.packed import PackedParameters, reduce


class GossipOptimizer(AsynchronousOptimizer):
    """Base of the optimizers that gossip.

    A rank of which nothing is heard for ``timeout`` seconds while it is waited for is
    lost: this rank goes on without it.

    Args:
        actual_optimizer: makes the updates.
        communicator: of the ranks that gossip.
        graph: of those that exchange.
        timeout: in seconds.
    """

    def __init__(
        self,
        actual_optimizer: GradientMethod,
        communicator: Communicator,
        graph: Graph,
        timeout: float,
    ) -> None:
        super().__init__(actual_optimizer, communicator)
        self._check_graph(graph, communicator.size)
        vars(self).update(
            _graph=graph,
            _timeout=timeout,
            _lost=set(),
            _left=set(),  # ranks that have joined
            # Messages of its own: others of the communicator's do not mix with them.
            _comm=communicator.split(0, communicator.rank),
        )

    def _check_graph(self, graph: Graph, size: int) -> None:
        """Raises ValueError for a graph of another number of ranks."""
        graph.weights(size)

    def _scaled_to(self, total: float, weight: float) -> float:
        """This rank's weight, so that the ranks' weights sum to ``total``.

        After the weights of another number of ranks have been loaded they do not.
        """
        found = self._sum(weight)
        return weight if math.isclose(found, total) else weight * total / found

    def _weighted_mean(self, weight: float) -> list[Array]:
        """The mean of all ranks' parameters by their weights; all ranks call it."""
        part = weight / self._sum(weight)
        flats = PackedParameters(self.target).pack()
        flats = [x * x.dtype.type(part) for x in flats]
        reduce(self._comm, flats, "sum")
        return flats

    def _sum(self, weight: float) -> float:
        return float(self._comm.all_reduce(numpy.array([weight]))[0])

    @property
    def ranks_left(self) -> int:
        """The ranks that this one has not lost, with itself."""
        return self.communicator.size - len(self._lost)

    def _lose(self, rank: int) -> None:
        if rank in self._lost:
            return
        self._lost.add(rank)
        warnings.warn(
            f"gossip: rank {self._comm.rank} has lost rank {rank}; {self.ranks_left} "
            f"of {self._comm.size} ranks are left",
            stacklevel=2,
        )

    def _send(self, rank: int, arrays: Sequence[Array]) -> None:
        """Sends arrays that do not change any more."""
        self._comm.send(tuple(arrays), rank, wait=False)

    def _receive(self, rank: int) -> tuple[Array, ...] | None:
        """The next message of a rank; None if it is lost."""
        if rank in self._lost:
            return None
        try:
            found = self._comm.probe(rank, 0, self._timeout)
        except RankFailed:  # it has exited
            found = None
        if found is None:
            self._lose(rank)
            return None
        arrays: tuple[Array, ...] = self._comm.recv(rank, 0)
        return arrays

    def observe(self) -> dict[str, float]:
        """Numbers about this rank's communication so far, by name."""
        traffic = self._comm.traffic
        return {
            "messages": traffic.messages,
            "bytes": traffic.bytes,
            "ranks_left": self.ranks_left,
        }
