"""Gossip in steps: each rank waits for its neighbours of the step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import numpy

from renga.core.serializer import AbstractSerializer
from renga.core.types import Array
from renga.parallel.asynchronous.gossip.gossip_optimizer import GossipOptimizer
from renga.parallel.asynchronous.graphs import Graph, is_doubly_stochastic


class SynchronousGossip(GossipOptimizer):
    """Has every rank exchange in each of its updates; ``_steps`` counts them.

    A rank that has no more data tells the others in ``join()``; they go on without it.
    """

    _steps = 0

    def _after_begin(self, resumes: bool) -> None:
        if not resumes:
            self._steps = 0

    def _column(self) -> Array:
        """The weights with which the ranks take what this one has, in this step."""
        w = self._graph.weights(self._comm.size, self._steps)
        return self._without_lost(w[:, self._comm.rank])

    def _row(self) -> Array:
        """The weights with which this rank takes what the others have."""
        w = self._graph.weights(self._comm.size, self._steps)
        return self._without_lost(w[self._comm.rank])

    def _without_lost(self, weights: Array) -> Array:
        """Weights in which this rank takes the parts of those that are not there."""
        weights = weights.copy()
        for rank in self._lost | self._left:
            weights[self._comm.rank] += weights[rank]
            weights[rank] = 0
        return weights

    def _others(self, weights: Array) -> list[int]:
        return [int(r) for r in numpy.flatnonzero(weights) if r != self._comm.rank]

    def _receive(self, rank: int) -> tuple[Array, ...] | None:
        if rank in self._left:
            return None
        message = super()._receive(rank)
        if message == ():
            self._left.add(rank)
            return None
        return message

    def _join(self) -> None:
        """Tells the others that this rank makes no more updates; waits for the same."""
        if not self._begin_to_join():
            return
        others = set(range(self._comm.size)) - {self._comm.rank}
        for rank in others - self._lost:
            self._send(rank, [])
        for rank in others:
            while self._receive(rank) is not None:
                pass
        self._left.clear()

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the actual optimizer and the number of the step.

        Loaded between updates, that stays as it is: ranks that have not loaded a file
        would exchange with others than this one.
        """
        super().serialize(serializer)
        steps = serializer["gossip"]("steps", self._steps)
        if self._packed is None:
            self._steps = steps


class DPSGDOptimizer(SynchronousGossip):
    """``x_i = sum_j W_ij x_j - step(gradient at x_i)``; W is doubly stochastic.

    The parameters are sent while the gradients are computed.

    Source: Lian et al., Can decentralized algorithms outperform centralized
    algorithms?, NIPS 2017 (D-PSGD).

    Raises:
        ValueError: if rows or columns of W do not sum to 1.
    """

    # What the others have got in this step, in which a loss function may raise.
    _sent: Sequence[Array] = ()

    def _check_graph(self, graph: Graph, size: int) -> None:
        super()._check_graph(graph, size)
        for step in range(graph.period(size)):
            if not is_doubly_stochastic(graph.weights(size, step)):
                raise ValueError(
                    "create_gossip_optimizer: expected a graph whose rows and columns "
                    "sum to 1 for dpsgd; sgp needs only columns that do"
                )

    def _update(self, forward: Callable[[], Any] | None) -> None:
        if not self._sent:
            self._sent = self._packed.pack()
            for rank in self._others(self._column()):
                self._send(rank, self._sent)
        self._compute_gradients(forward)
        self._update_alone()
        self._packed.add(self._moves(self._sent))
        self._sent = ()
        self._steps += 1

    def _moves(self, own: Sequence[Array]) -> list[Array]:
        """``sum_j W_ij (x_j - x_i)``: exactly zero where all ranks are equal."""
        weights = self._row()
        total = [numpy.zeros_like(x) for x in own]
        for rank in self._others(weights):
            # This rank takes the part of a rank that is lost.
            for y, x, other in zip(total, own, self._receive(rank) or ()):
                y += y.dtype.type(weights[rank]) * (other - x)
        return total


class PushSumOptimizer(SynchronousGossip):
    """Stochastic gradient push: the graph may be directed.

    Each rank has numerators x and a weight w, which sum to the number of ranks; the
    model has ``z = x / w``. Of both, each rank sends shares that sum to 1.

    Source: Assran et al., Stochastic gradient push for distributed deep learning, ICML
    2019.
    """

    _weight = 1.0

    @property
    def weight(self) -> float:
        """This rank's weight w; their sum is the number of ranks."""
        return self._weight

    def _after_begin(self, resumes: bool) -> None:
        super()._after_begin(resumes)
        if not resumes:
            self._weight = 1.0
        self._weight = self._scaled_to(float(self._comm.size), self._weight)

    def _update(self, forward: Callable[[], Any] | None) -> None:
        self._compute_gradients(forward)
        before = self._packed.pack()
        self._update_alone()
        # x = w z moves as z does.
        moved = self._packed.pack()
        for x, z in zip(moved, before):
            x += x.dtype.type(self._weight - 1) * z
        self._mix(moved)
        self._steps += 1

    def _mix(self, x: list[Array]) -> None:
        shares = self._column()
        for rank in self._others(shares):
            self._send(rank, self._share(x, shares[rank]))
        total = self._share(x, shares[self._comm.rank])
        for rank in self._others(self._row()):
            received = self._receive(rank)
            for y, part in zip(total, received or ()):
                y += part
        *numerators, weight = total
        self._weight = float(weight[0])
        self._packed.unpack([y / y.dtype.type(self._weight) for y in numerators])

    def _share(self, x: list[Array], share: float) -> list[Array]:
        shares = [y * y.dtype.type(share) for y in x]
        return [*shares, numpy.array([self._weight * share])]

    def _average(self) -> list[Array]:
        """The mean of x, which is that of z weighted by w."""
        return self._weighted_mean(self._weight)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the actual optimizer, the step and the weight."""
        super().serialize(serializer)
        self._weight = serializer["gossip"]("weight", self._weight)
