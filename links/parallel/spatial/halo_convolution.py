"""Convolution from shards of one image to shards of another, with a halo exchange.

Convolution is linear in the image. The own shard is convolved while halos are
exchanged, and what the halos contribute is added to the pixels near the edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

import numpy

from renga import _core
from renga.core.types import Array
from renga.links.parallel.spatial.grid import (
    Box,
    SpatialGrid,
    extents_of,
    index_in,
    intersect,
    once_per_grid,
)
from renga.links.parallel.spatial.halo_exchange import HaloExchange
from renga.links.parallel.spatial.window import SpatialWindow

ops = _core.ops
Extents = tuple[int, ...]


class Overlap(NamedTuple):
    """A part of a block of the source, and the part of the destination it affects."""

    source_index: tuple[Any, ...]  # in the block of the source
    destination_index: tuple[Any, ...]  # in the own shard of the destination
    extents: Extents  # of the part of the destination
    pad: Extents  # from the start of the first window to the larger image's first pixel
    is_complete: bool  # whether it is the own shard of the destination


class HaloConvolution:
    """A convolution from the larger image of a window to the smaller one.

    Args:
        sources, destinations: the extents of the whole images.
        transposed: whether it goes from the smaller image to the larger one.
    """

    def __init__(
        self,
        grid: SpatialGrid,
        window: SpatialWindow,
        sources: Extents,
        destinations: Extents,
        transposed: bool,
    ) -> None:
        self.window, self.transposed = window, transposed
        owned, results = grid.boxes(sources), grid.boxes(destinations)
        image = tuple(map(range, sources))
        needed = window.outputs_around if transposed else window.inputs_of
        halos = [
            _around(intersect(needed(result), image), own) if all(result) else []
            for result, own in zip(results, owned)
        ]
        self.exchange = HaloExchange(grid, owned, halos)
        self.result = results[grid.rank]
        self.own = self._overlap(owned[grid.rank])
        self.halos = [self._overlap(box) for box in halos[grid.rank]]

    def _overlap(self, box: Box) -> Overlap | None:
        """Of a block of the source and the own shard of the destination."""
        large, small = (self.result, box) if self.transposed else (box, self.result)
        axes = []
        for i, (x, y) in enumerate(zip(large, small)):
            aligned = self.window.align(i, x, y)
            if aligned is None:
                return None
            axes.append(aligned)
        xs: Box = tuple(axis[0] for axis in axes)
        ys: Box = tuple(axis[1] for axis in axes)
        pad = tuple(axis[2] for axis in axes)
        source, destination = (ys, xs) if self.transposed else (xs, ys)
        return Overlap(
            index_in(source, box),
            index_in(destination, self.result),
            extents_of(destination),
            pad,
            destination == self.result,
        )

    def run(
        self,
        a: numpy.ndarray,
        W: Array,
        b: Array | None,
        groups: int,
        started: Callable[[], list[numpy.ndarray]] | None = None,
    ) -> tuple[numpy.ndarray, list[numpy.ndarray]]:
        """The own shard of the destination, and the halos.

        Args:
            started: the result of ``exchange.start(a)``, if it was called before.

        Shapes:
            a: (N, channels, ...) of the own shard of the source
            result: (N, channels, ...)
        """
        wait = started or self.exchange.start(a)
        y = self._convolve_own(a, W, b, groups)
        halos = wait()
        for overlap, halo in zip(self.halos, halos):
            if overlap is not None:
                y[overlap.destination_index] += self._convolve(
                    overlap, halo[overlap.source_index], W, None, groups
                )
        return y, halos

    def _convolve_own(
        self, a: numpy.ndarray, W: Any, b: Any, groups: int
    ) -> numpy.ndarray:
        """The contribution of the own shard of the source."""
        own = self.own
        if own is not None and own.is_complete:
            return self._convolve(own, a[own.source_index], W, b, groups)
        channels = W.shape[1] * groups if self.transposed else W.shape[0]
        shape = (a.shape[0], channels, *extents_of(self.result))
        y = numpy.zeros_like(a, shape=shape)
        if own is not None:
            y[own.destination_index] = self._convolve(
                own, a[own.source_index], W, None, groups
            )
        if b is not None:
            y += b.reshape(-1, *[1] * len(self.result))
        return y

    def _convolve(
        self, overlap: Overlap, source: numpy.ndarray, W: Any, b: Any, groups: int
    ) -> numpy.ndarray:
        convolve = (
            ops.block_convolution_input_grad
            if self.transposed
            else ops.block_convolution
        )
        return convolve(source, W, b, self._options(overlap, groups), overlap.extents)

    def weight_grad(
        self,
        a: numpy.ndarray,
        halos: Sequence[numpy.ndarray],
        gy: numpy.ndarray,
        W: numpy.ndarray,
        groups: int,
    ) -> numpy.ndarray:
        """This rank's part of the gradient of W; the sum over the ranks is pending.

        Shapes:
            a: (N, channels, ...) of the own shard of the source
            gy: (N, channels, ...) of the own shard of the destination
        """
        gW = numpy.zeros_like(W, a.dtype, "C")
        for overlap, block in zip((self.own, *self.halos), (a, *halos)):
            if overlap is not None:
                source = block[overlap.source_index]
                destination = gy[overlap.destination_index]
                pair = source, destination
                small, large = pair if self.transposed else pair[::-1]
                options = self._options(overlap, groups)
                gW += ops.block_convolution_weight_grad(
                    small, large, options, W.shape[2:]
                )
        return gW

    def _options(self, overlap: Overlap, groups: int) -> Any:
        return (self.window.stride, overlap.pad, self.window.dilate, groups)


def _around(needed: Box | None, own: Box) -> list[Box]:
    """What is needed beyond the own shard, as disjoint boxes.

    Those above and below come first and have the full width.
    """
    if needed is None:
        return []
    inner = intersect(needed, own)
    if inner is None:
        return [needed]
    boxes = []
    for i, (outside, inside) in enumerate(zip(needed, inner)):
        for side in (
            range(outside.start, inside.start),
            range(inside.stop, outside.stop),
        ):
            if side:
                boxes.append((*inner[:i], side, *needed[i + 1 :]))
    return boxes


@once_per_grid
def halo_convolution(
    grid: SpatialGrid,
    window: SpatialWindow,
    sources: Extents,
    destinations: Extents,
    transposed: bool,
) -> HaloConvolution:
    """The :class:`HaloConvolution` with these arguments."""
    return HaloConvolution(grid, window, sources, destinations, transposed)
