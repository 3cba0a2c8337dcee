"""Gradients of which each rank gets a shard of the means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from renga.communicators import Communicator, packing
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.parallel.data.bucketed_reducer import BucketedReducer
from renga.parallel.data.overlap import OverlapTrial
from renga.parallel.data.sharded_states.layout import Piece
from renga.parallel.data.sharded_states.states import ShardedStates, part_of
from renga.parallel.data.synchronization import SyncRequest
from renga.parallel.data.tracing import span

# Buckets that are not kept and wait for other ranks: their memory is bounded.
_IN_FLIGHT = 2


class ScatterReducer(BucketedReducer):
    """Scatters the means of buckets while ``backward()`` runs: half of an all-reduce.

    Buffers that are kept are reduced in place where the ranks share memory.

    After ``wait`` the pieces of ``states`` have their gradients, and no parameter has;
    ``arrivals`` waits for the numbers.

    Args:
        comm: the communicator.
        params: those of ``states``.
        zero_fill: whether a gradient that no rank has becomes zero, or stays None.
        states: whose layouts are the buckets.
        keeps_buffers: whether ``backward()`` writes into buffers that are kept, or
            gradients are freed bucket by bucket.
    """

    def __init__(
        self,
        comm: Communicator,
        params: Sequence[Parameter],
        zero_fill: bool,
        states: ShardedStates,
        keeps_buffers: bool,
    ) -> None:
        super().__init__(comm, params, zero_fill)
        self._states = states
        scattered = [layout.indices for layout in states.layouts]
        self._use_buckets(scattered, scattered)
        self._is_order_agreed = True
        self._flats: list[Array] = []
        if keeps_buffers:
            self._flats = [states.new_flat(layout) for layout in states.layouts]
            for layout, flat in zip(states.layouts, self._flats):
                flat[...] = 0
                self._buffers.update(zip(layout.indices, layout.views(flat)))
        else:
            self._trial = OverlapTrial(comm, choice=True)

    def begin(self, request: SyncRequest, loss_scale: float | None = None) -> None:
        super().begin(request, loss_scale)
        self._rows: list[Array] = []  # this rank's of the buckets that were launched

    def _launch_next(self, weight: float) -> None:
        b = len(self._launched)
        if not self._flats and b >= _IN_FLIGHT:
            self._launched[b - _IN_FLIGHT][0].wait()
        layout = self._states.layouts[b]
        flat = self._flats[b] if self._flats else layout.empty()
        for i, view in zip(layout.indices, layout.views(flat)):
            self._take(i, weight, view)
        if self._flats and self._states.in_windows:
            # The means are written in place, which is less than to write them anywhere
            # else.
            work = self._comm.all_reduce(flat, "mean", out=flat, wait=False)
            row = flat[self._comm.rank]
        else:
            row = layout.empty_row()
            lane = self._states.lane(b)
            work = lane.reduce_scatter(flat, "mean", out=row, wait=False)
        self._launched.append((work, lambda _: row))
        self._rows.append(row)

    def wait(self) -> bool:
        """Gives the pieces their gradients, which :meth:`arrivals` waits for."""
        with span("wait for gradients", "waiting"):
            flags = self._agreed_flags()
        self._rests = {
            i: packing.average(self._comm, [self._take(i, self._weight)])[0]
            for i in numpy.flatnonzero(flags == 2).tolist()
        }
        for pieces, row in zip(self._states.own, self._rows):
            for piece, part in pieces:
                used = flags[piece.param] or self._zero_fill
                mean = _part_of(row, piece).reshape(part.shape)
                part.grad = mean if used else None
                part.loss_scale = self._loss_scale
        return True

    def arrivals(self) -> Iterator[int]:
        """Waits for the buckets in order; gives each when its means are there."""
        for b in range(len(self._rows)):
            with span("wait for gradients", "waiting"):
                row = self._arrived(b)
            for piece, _ in self._states.own[b]:
                if piece.param in self._rests:
                    mean: Any = _part_of(row, piece)
                    mean += part_of(self._rests[piece.param], piece)
            yield b


def _part_of(row: Array, piece: Piece) -> Array:
    """The elements of a piece in its rank's row."""
    part: Array = row[piece.offset : piece.offset + piece.stop - piece.start]
    return part
