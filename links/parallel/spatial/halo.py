"""The halo exchange: parts of an image, from whoever has them, and the way back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy

from renga import _core
from renga.communicators import settings
from renga.function_node import FunctionNode
from renga.links.parallel.spatial.grid import (
    Box,
    SpatialGrid,
    index_in,
    intersect,
    lengths,
)
from renga.variable import Variable, as_variable

_TAG = 0x4841  # of the messages with halos

Parts = list[tuple[int, Box]]  # which of the boxes wanted, and what of it


class Halo:
    """Who gives what to whom, so that each rank gets the boxes it wants.

    Boxes may reach over the image and lie in the parts of any ranks. Messages go
    from each rank to those that want something of it, and nobody waits for an answer.

    Args:
        grid: the ranks.
        owned: each rank's part of the image.
        wanted: each rank's boxes.
    """

    def __init__(
        self, grid: SpatialGrid, owned: Sequence[Box], wanted: Sequence[Sequence[Box]]
    ) -> None:
        self.comm = grid.comm
        self.own = owned[grid.rank]
        self.wanted = wanted[grid.rank]
        self.given = [_shared(self.own, boxes) for boxes in wanted]
        self.taken = [_shared(part, self.wanted) for part in owned]
        self._is_covered = [
            sum(_pixels(p) for parts in self.taken for j, p in parts if i == j)
            == _pixels(box)
            for i, box in enumerate(self.wanted)
        ]
        self.is_idle = all(list(boxes) == [part] for part, boxes in zip(owned, wanted))

    def start(self, x: numpy.ndarray, fill: float = 0) -> Callable[[], list[Any]]:
        """Sends what others want of ``x``; returns what waits for what they send.

        Shapes:
            x: (N, C, ...) of the own part
            result: (N, C, ...) of each box wanted, ``fill`` outside of the image
        """
        me = self.comm.rank
        self._send(self.given, lambda i, part: x[index_in(part, self.own)])
        arriving = self._receive(self.taken, x)
        pieces = [self._blank(i, x, fill) for i in range(len(self.wanted))]
        for i, part in self.taken[me]:
            pieces[i][index_in(part, self.wanted[i])] = x[index_in(part, self.own)]

        def finish() -> list[Any]:
            for (i, part), data in arriving():
                pieces[i][index_in(part, self.wanted[i])] = data
            return pieces

        return finish

    def give_back(self, pieces: Sequence[numpy.ndarray]) -> numpy.ndarray:
        """The transpose: adds up what all ranks have of each pixel.

        Shapes:
            pieces: (N, C, ...) of each box wanted
            result: (N, C, ...) of the own part
        """
        like = pieces[0]
        self._send(
            self.taken, lambda i, part: pieces[i][index_in(part, self.wanted[i])]
        )
        arriving = self._receive(self.given, like)
        x = numpy.zeros_like(like, shape=(*like.shape[:2], *lengths(self.own)))
        for i, part in self.taken[self.comm.rank]:
            x[index_in(part, self.own)] += pieces[i][index_in(part, self.wanted[i])]
        for (_, part), data in arriving():
            x[index_in(part, self.own)] += data
        return x

    def _blank(self, i: int, like: numpy.ndarray, fill: float) -> numpy.ndarray:
        """Room for a box, filled unless it lies in the image."""
        box = self.wanted[i]
        y = numpy.empty_like(like, shape=(*like.shape[:2], *lengths(box)))
        if not self._is_covered[i]:
            y[...] = fill
        return y

    def _send(
        self, parts: Sequence[Parts], view: Callable[[int, Box], numpy.ndarray]
    ) -> None:
        for rank, pieces in enumerate(parts):
            if rank != self.comm.rank and pieces:
                views = [_channels_last(view(*piece)).ravel() for piece in pieces]
                message = views[0] if len(views) == 1 else numpy.concatenate(views)
                self.comm.send(message, rank, _TAG, wait=False)

    def _receive(
        self, parts: Sequence[Parts], like: numpy.ndarray
    ) -> Callable[[], Iterable[Any]]:
        """What waits for the other ranks' parts: (part, array) in rank order."""
        works = []
        for rank, pieces in enumerate(parts):
            if rank != self.comm.rank and pieces:
                pixels = sum(_pixels(part) for _, part in pieces)
                buffer = numpy.empty(pixels * like.shape[0] * like.shape[1], like.dtype)
                work = self.comm.recv(rank, _TAG, out=buffer, wait=False)
                works.append((pieces, work))

        def arriving() -> Iterable[Any]:
            for pieces, work in works:
                data, begin = work.wait(settings.timeout()), 0
                for piece in pieces:
                    shape = (like.shape[0], *lengths(piece[1]), like.shape[1])
                    end = begin + math.prod(shape)
                    axes = (0, -1, *range(1, like.ndim - 1))
                    yield piece, data[begin:end].reshape(shape).transpose(axes)
                    begin = end

        return arriving


def _shared(part: Box, boxes: Sequence[Box]) -> Parts:
    both = ((i, intersect(part, box)) for i, box in enumerate(boxes))
    return [(i, b) for i, b in both if b is not None]


def _channels_last(x: numpy.ndarray) -> numpy.ndarray:
    return x.transpose(0, *range(2, x.ndim), 1)


def _pixels(box: Box) -> int:
    return math.prod(lengths(box))


class Extend(FunctionNode):
    """One box of an image for each rank."""

    def __init__(self, halo: Halo, fill: float = 0) -> None:
        self.halo = halo
        self.fill = fill

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(self.halo.start(inputs[0], self.fill)())

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        return Contract(self.halo).apply(grad_outputs)


class Contract(FunctionNode):
    """The transpose of Extend."""

    def __init__(self, halo: Halo) -> None:
        self.halo = halo

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self.halo.give_back(inputs),)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        return Extend(self.halo).apply(grad_outputs)


def extend(halo: Halo, x: Any, fill: float = 0) -> Variable:
    """The one box that this rank wants of the image of which it has the part ``x``.

    Gradients come back to the ranks that the box came from, and can be differentiated
    again.

    Shapes:
        x: (N, C, ...) of the own part
        result: (N, C, ...) of the box, ``fill`` outside of the image
    """
    if halo.is_idle:
        return as_variable(x)
    x = as_variable(x)
    return _core.in_dtype_of(Extend(halo, fill).apply((x,))[0], x)
