"""Convolution from the parts of one image to the parts of another, by halos.

Convolution is linear in the image: what the own part makes is computed while halos
travel, and what they make is added to the pixels near the edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy

from renga import _core
from renga.links.parallel.spatial.grid import (
    Box,
    SpatialGrid,
    index_in,
    intersect,
    lengths,
)
from renga.links.parallel.spatial.halo import Halo
from renga.links.parallel.spatial.window import SpatialWindow

ops = _core.ops
Extents = tuple[int, ...]


class Meeting(NamedTuple):
    """What a piece of one image and a part of the other have to do with each other."""

    piece: tuple[Any, ...]  # what takes it of the piece
    result: tuple[Any, ...]  # what takes it of the part
    extents: Extents  # of the latter
    pad: Extents  # from the first window's begin to the first element of the larger
    is_whole: bool  # whether it is all of the part


class Passage:
    """From the parts of the larger image of a window to those of the smaller one.

    With ``up``, from those of the smaller image to those of the larger one.
    """

    def __init__(
        self,
        grid: SpatialGrid,
        window: SpatialWindow,
        sources: Extents,
        results: Extents,
        up: bool = False,
    ) -> None:
        self.window, self.up = window, up
        owned, made = grid.boxes(sources), grid.boxes(results)
        image = tuple(map(range, sources))
        needed = window.outputs_around if up else window.inputs_of
        slabs = [
            _around(intersect(needed(box), image), part) if all(box) else []
            for box, part in zip(made, owned)
        ]
        self.halo = Halo(grid, owned, slabs)
        self.result = made[grid.rank]
        self.own = self._meeting(owned[grid.rank])
        self.slabs = [self._meeting(box) for box in slabs[grid.rank]]

    def _meeting(self, box: Box) -> Meeting | None:
        """Of a piece of the source with the own part of the result."""
        large, small = (self.result, box) if self.up else (box, self.result)
        axes = []
        for i, (x, y) in enumerate(zip(large, small)):
            aligned = self.window.align(i, x, y)
            if aligned is None:
                return None
            axes.append(aligned)
        xs: Box = tuple(axis[0] for axis in axes)
        ys: Box = tuple(axis[1] for axis in axes)
        pad = tuple(axis[2] for axis in axes)
        piece, result = (ys, xs) if self.up else (xs, ys)
        return Meeting(
            index_in(piece, box),
            index_in(result, self.result),
            lengths(result),
            pad,
            result == self.result,
        )

    def run(
        self, a: numpy.ndarray, W: Any, b: Any, groups: int, arriving: Any = None
    ) -> tuple[numpy.ndarray, list[numpy.ndarray]]:
        """The own part of the result, and the halos.

        Args:
            arriving: what ``halo.start(a)`` returned, if it was called before.

        Shapes:
            a: (N, channels, ...) of the own part of the source
            result: (N, channels, ...)
        """
        arriving = arriving or self.halo.start(a)
        y = self._own(a, W, b, groups)
        halos = arriving()
        for meeting, halo in zip(self.slabs, halos):
            if meeting is not None:
                added = self._made(meeting, halo[meeting.piece], W, None, groups)
                y[meeting.result] += added
        return y, halos

    def _own(self, a: numpy.ndarray, W: Any, b: Any, groups: int) -> numpy.ndarray:
        """What comes of the own part alone."""
        if self.own is not None and self.own.is_whole:
            return self._made(self.own, a[self.own.piece], W, b, groups)
        channels = W.shape[1] * groups if self.up else W.shape[0]
        y = numpy.zeros_like(a, shape=(a.shape[0], channels, *lengths(self.result)))
        if self.own is not None:
            y[self.own.result] = self._made(
                self.own, a[self.own.piece], W, None, groups
            )
        if b is not None:
            y += b.reshape(-1, *[1] * len(self.result))
        return y

    def _made(
        self, meeting: Meeting, piece: numpy.ndarray, W: Any, b: Any, groups: int
    ) -> numpy.ndarray:
        options = self._options(meeting, groups)
        convolve = (
            ops.block_convolution_input_grad if self.up else ops.block_convolution
        )
        return convolve(piece, W, b, options, meeting.extents)

    def weight_grad(
        self,
        a: numpy.ndarray,
        halos: Sequence[Any],
        gy: numpy.ndarray,
        W: numpy.ndarray,
        groups: int,
    ) -> numpy.ndarray:
        """What this rank finds of the gradient of W, given that of the own result."""
        gW = numpy.zeros(W.shape, a.dtype)
        for meeting, piece in zip((self.own, *self.slabs), (a, *halos)):
            if meeting is not None:
                of_piece, of_result = piece[meeting.piece], gy[meeting.result]
                pair = (of_piece, of_result) if self.up else (of_result, of_piece)
                options = self._options(meeting, groups)
                gW += ops.block_convolution_weight_grad(*pair, options, W.shape[2:])
        return gW

    def _options(self, meeting: Meeting, groups: int) -> Any:
        return (self.window.stride, meeting.pad, self.window.dilate, groups)


def _around(needed: Box | None, part: Box) -> list[Box]:
    """What is needed beyond the own part: boxes of full width, first of all rows."""
    if needed is None:
        return []
    inner = intersect(needed, part)
    if inner is None:
        return [needed]
    slabs = []
    for i, (outside, inside) in enumerate(zip(needed, inner)):
        for part_of in (
            range(outside.start, inside.start),
            range(inside.stop, outside.stop),
        ):
            if part_of:
                slabs.append((*inner[:i], part_of, *needed[i + 1 :]))
    return slabs


passage = lru_cache(maxsize=1024)(Passage)
