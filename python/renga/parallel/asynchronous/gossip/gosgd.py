"""Gossip by messages without an answer: GoSGD."""

from __future__ import annotations

from typing import Any, Callable

import numpy

from renga.communicators import Communicator
from renga.core.optimizer import GradientMethod
from renga.core.serializer import AbstractSerializer
from renga.core.types import Array
from renga.parallel.asynchronous.gossip.random_gossip import RandomGossip
from renga.parallel.asynchronous.graphs import Graph


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

    def join(self) -> None:
        """Takes the other ranks' messages until all have joined."""
        if self._begin_to_join():
            self._leave(numpy.zeros(1))

    def _average(self) -> list[Array]:
        """The mean of x weighted by a; messages on their way are not in it."""
        return self._weighted_mean(self._weight)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the actual optimizer and the weight."""
        super().serialize(serializer)
        self._weight = serializer["gossip"]("weight", self._weight)
