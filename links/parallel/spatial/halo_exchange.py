"""The halo exchange: boxes of an image, sent by the ranks that own them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy

from renga import _core
from renga.communicators import settings
from renga.core.function_node import FunctionNode
from renga.core.types import Array, Grads, Indexes, Variables
from renga.core.variable import Variable, as_variable
from renga.links.parallel.spatial.grid import (
    Box,
    SpatialGrid,
    extents_of,
    index_in,
    intersect,
)

_TAG = 0x4841  # of messages with halos

Overlaps = list[tuple[int, Box]]  # the number of a requested box, and a part of it


class HaloExchange:
    """Which rank sends what to whom, so that each gets the boxes it requests.

    Boxes may reach beyond the image and overlap with what any ranks own. Each rank
    sends one message to each rank that requests something of it, without being asked.

    Args:
        grid: the ranks.
        owned: each rank's shard of the image.
        requested: each rank's boxes.
    """

    def __init__(
        self,
        grid: SpatialGrid,
        owned: Sequence[Box],
        requested: Sequence[Sequence[Box]],
    ) -> None:
        self.comm = grid.comm
        self.own = owned[grid.rank]
        self.requested = requested[grid.rank]
        # These are, by rank, what is sent to it and received from it.
        self.sends = [_overlaps(self.own, boxes) for boxes in requested]
        self.receives = [_overlaps(box, self.requested) for box in owned]
        self._is_covered = [
            sum(_pixels(p) for parts in self.receives for j, p in parts if i == j)
            == _pixels(box)
            for i, box in enumerate(self.requested)
        ]
        self.is_identity = all(
            list(boxes) == [box] for box, boxes in zip(owned, requested)
        )

    def start(
        self, x: numpy.ndarray, fill: float = 0
    ) -> Callable[[], list[numpy.ndarray]]:
        """Sends what others request of ``x``.

        Returns:
            A function that waits for the messages of others and returns the boxes.

        Shapes:
            x: (N, C, ...) of the own shard
            result: (N, C, ...) of each requested box, ``fill`` outside of the image
        """
        rank = self.comm.rank
        self._send(self.sends, lambda i, part: x[index_in(part, self.own)])
        received = self._receive(self.receives, x)
        boxes = [self._empty(i, x, fill) for i in range(len(self.requested))]
        for i, part in self.receives[rank]:
            boxes[i][index_in(part, self.requested[i])] = x[index_in(part, self.own)]

        def wait() -> list[numpy.ndarray]:
            for (i, part), data in received():
                boxes[i][index_in(part, self.requested[i])] = data
            return boxes

        return wait

    def accumulate(self, boxes: Sequence[numpy.ndarray]) -> numpy.ndarray:
        """The transpose: adds up what the ranks' boxes have of each pixel.

        Shapes:
            boxes: (N, C, ...) of each requested box
            result: (N, C, ...) of the own shard
        """
        like = boxes[0]
        self._send(
            self.receives, lambda i, part: boxes[i][index_in(part, self.requested[i])]
        )
        received = self._receive(self.sends, like)
        x = numpy.zeros_like(like, shape=(*like.shape[:2], *extents_of(self.own)))
        for i, part in self.receives[self.comm.rank]:
            x[index_in(part, self.own)] += boxes[i][index_in(part, self.requested[i])]
        for (_, part), data in received():
            x[index_in(part, self.own)] += data
        return x

    def _empty(self, i: int, like: numpy.ndarray, fill: float) -> numpy.ndarray:
        """An array for a box; filled if the box reaches beyond the image."""
        box = self.requested[i]
        y = numpy.empty_like(like, shape=(*like.shape[:2], *extents_of(box)))
        if not self._is_covered[i]:
            y[...] = fill
        return y

    def _send(
        self, overlaps: Sequence[Overlaps], view: Callable[[int, Box], numpy.ndarray]
    ) -> None:
        for rank, parts in enumerate(overlaps):
            if rank != self.comm.rank and parts:
                views = [_channels_last(view(*part)).ravel() for part in parts]
                message = views[0] if len(views) == 1 else numpy.concatenate(views)
                self.comm.send(message, rank, _TAG, wait=False)

    def _receive(
        self, overlaps: Sequence[Overlaps], like: numpy.ndarray
    ) -> Callable[[], Iterable[Any]]:
        """What waits for the other ranks' messages: (overlap, array) in rank order."""
        pending = []
        for rank, parts in enumerate(overlaps):
            if rank != self.comm.rank and parts:
                pixels = sum(_pixels(part) for _, part in parts)
                count = pixels * like.shape[0] * like.shape[1]
                buffer = numpy.empty_like(like, shape=(count,))
                work = self.comm.recv(rank, _TAG, out=buffer, wait=False)
                pending.append((parts, work))

        def received() -> Iterable[Any]:
            for parts, work in pending:
                data, begin = work.wait(settings.timeout()), 0
                for part in parts:
                    shape = (like.shape[0], *extents_of(part[1]), like.shape[1])
                    end = begin + math.prod(shape)
                    axes = (0, -1, *range(1, like.ndim - 1))
                    yield part, data[begin:end].reshape(shape).transpose(axes)
                    begin = end

        return received


def _overlaps(box: Box, boxes: Sequence[Box]) -> Overlaps:
    found = ((i, intersect(box, other)) for i, other in enumerate(boxes))
    return [(i, overlap) for i, overlap in found if overlap is not None]


def _channels_last(x: numpy.ndarray) -> numpy.ndarray:
    return x.transpose(0, *range(2, x.ndim), 1)


def _pixels(box: Box) -> int:
    return math.prod(extents_of(box))


class ExchangeHalo(FunctionNode):
    """From each rank's shard of an image to the boxes that it requests."""

    def __init__(self, exchange: HaloExchange, fill: float = 0) -> None:
        self.exchange = exchange
        self.fill = fill

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(self.exchange.start(inputs[0], self.fill)())

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        return AccumulateHalo(self.exchange).apply(grad_outputs)


class AccumulateHalo(FunctionNode):
    """The transpose of ExchangeHalo."""

    def __init__(self, exchange: HaloExchange) -> None:
        self.exchange = exchange

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return (self.exchange.accumulate(inputs),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        return ExchangeHalo(self.exchange).apply(grad_outputs)


def exchange_halo(exchange: HaloExchange, x: Variable, fill: float = 0) -> Variable:
    """The one box that this rank requests, of an image of which ``x`` is its shard.

    It can be differentiated any number of times.

    Shapes:
        x: (N, C, ...) of the own shard
        result: (N, C, ...) of the box, ``fill`` outside of the image
    """
    if exchange.is_identity:
        return as_variable(x)
    x = as_variable(x)
    return _core.in_dtype_of(ExchangeHalo(exchange, fill).apply((x,))[0], x)
