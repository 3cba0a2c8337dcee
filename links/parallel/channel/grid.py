"""Which inputs and outputs of a layer each rank multiplies.

Ranks form a grid of ``inputs`` × ``outputs`` blocks. A rank gathers the input channels
of its block from the ranks that share it, multiplies them by its block of W, and the
partial outputs of the ranks that share an output block are added up. One block of
inputs is stationary-y: all inputs are gathered, nothing is added. One block of outputs
is stationary-x: nothing is gathered. What lies between is stationary-w.

Source: Dryden et al., Channel and filter parallelism for large-scale CNN training,
SC 2019.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from renga.functions import pad, reshape
from renga.links.parallel.groups import split_by
from renga.links.parallel.relayout import (
    BATCH,
    CHANNEL,
    EACH,
    PARTIAL,
    REPLICATED,
    Change,
    Layout,
    change_layout,
    sharded,
)
from renga.links.parallel.shard import lengths, shares
from renga.links.parallel.sharded_parameter import Piece


class Grid(NamedTuple):
    """How many blocks the inputs and the outputs of a layer are cut into."""

    inputs: int
    outputs: int
    gathers_weight: bool = False  # and shares out the batch

    @property
    def algorithm(self) -> str:
        """What it is called."""
        if self.gathers_weight:
            return "gathered-w"
        if self.inputs == 1:
            return "stationary-y"
        return "stationary-x" if self.outputs == 1 else "stationary-w"


def grids(size: int) -> list[Grid]:
    """All grids of ``size`` ranks, stationary-y first and gathered-w last."""
    blocks = [Grid(n, size // n) for n in range(1, size + 1) if size % n == 0]
    return blocks if size == 1 else [*blocks, Grid(1, size, True)]


def grouped_grids(candidates: Sequence[Grid]) -> list[Grid]:
    """Those for a grouped weight, of which a block of inputs is no rectangle."""
    return [grid for grid in candidates if grid.inputs == 1]


class ChannelGrid:
    """The blocks of a layer with ``inputs`` and ``outputs`` channels.

    Args:
        unit: how many features of the input a channel has.
    """

    def __init__(
        self, comm: Any, inputs: int, outputs: int, grid: Grid, unit: int = 1
    ) -> None:
        self.comm, self.grid = comm, grid
        self.in_shares = shares(inputs, comm.size, unit)
        self.out_shares = shares(outputs, comm.size)
        self.row, self.column = divmod(comm.rank, grid.outputs)
        # Who gathers the same inputs, and whose outputs are added up.
        self.gatherers, self.adders = _teams(comm, grid)

    def in_block(self, rank: int) -> list[range]:
        """The inputs that a rank multiplies."""
        first = rank // self.grid.outputs * self.grid.outputs
        return list(self.in_shares[first : first + self.grid.outputs])

    def out_block(self, rank: int) -> list[range]:
        """The outputs to which a rank contributes."""
        return list(self.out_shares[rank % self.grid.outputs :: self.grid.outputs])

    def pieces(self, in_axis: int, out_axis: int) -> list[Piece]:
        """What each rank holds of a weight with these axes."""
        return [
            Piece({in_axis: self.in_block(r), out_axis: self.out_block(r)})
            for r in range(self.comm.size)
        ]

    def out_pieces(self) -> list[Piece]:
        """What each rank holds of a bias."""
        return [Piece({0: [part]}) for part in self.out_shares]

    def before(self, layout: Layout, samples: int) -> Change | None:
        """What brings this rank its block of the inputs of some samples."""
        comm = self.comm
        if layout == REPLICATED:
            if self.grid.outputs > 1:
                return Change(comm, REPLICATED, EACH)
            parts = lengths(self.in_shares)
            return Change(comm, REPLICATED, CHANNEL, to_parts=parts)
        if self.grid.outputs == 1:
            return None
        parts = lengths(self.in_block(comm.rank))
        return Change(self.gatherers, CHANNEL, EACH, from_parts=parts)

    def block(self, x: Any, layout: Layout) -> Any:
        """This rank's block of what ``before`` brings."""
        if layout != REPLICATED or 1 in self.grid[:2]:
            return x
        block = self.in_block(self.comm.rank)
        return x[:, block[0].start : block[-1].stop]

    def weights(self, W: Any, b: Any, out_axis: int) -> tuple[Any, Any]:
        """What multiplies the block of inputs, and is added.

        Biases are zeros where another rank adds them.
        """
        if b is None or self.grid.inputs == 1:
            return W, b
        block = lengths(self.out_block(self.comm.rank))
        ahead, behind = sum(block[: self.row]), sum(block[self.row + 1 :])
        return W, pad(b, [(ahead, behind)], "constant")

    def after(self, layout: Layout, samples: int) -> Change | None:
        """What adds up the outputs of some samples, or puts them together."""
        grid, comm = self.grid, self.comm
        if grid.outputs == 1 and layout == REPLICATED:
            return Change(comm, PARTIAL, REPLICATED)
        if grid.inputs > 1:
            parts = lengths(self.out_block(comm.rank))
            return Change(self.adders, PARTIAL, CHANNEL, to_parts=parts)
        return self._put_together(layout)

    def lastly(self, layout: Layout) -> Change | None:
        """What puts the outputs together that had to be added up before."""
        return self._put_together(layout) if min(self.grid[:2]) > 1 else None

    def _put_together(self, layout: Layout) -> Change | None:
        if layout != REPLICATED:
            return None
        parts = lengths(self.out_shares)
        return Change(self.comm, CHANNEL, REPLICATED, from_parts=parts)


class GatheredWeight(ChannelGrid):
    """Each rank multiplies all channels of its share of the batch.

    Ranks exchange parts of channels for parts of the batch before and after, and
    gather the weight, of which each holds its own outputs. Less travels than with any
    grid where images are large and weights are small.
    """

    def before(self, layout: Layout, samples: int) -> Change | None:
        if layout == BATCH:
            return None
        parts = [] if layout == REPLICATED else lengths(self.in_shares)
        batch = lengths(shares(samples, self.comm.size))
        return Change(self.comm, layout, BATCH, parts, batch)

    def weights(self, W: Any, b: Any, out_axis: int) -> tuple[Any, Any]:
        parts = lengths(self.out_shares)
        if b is not None:
            b = change_layout(b, self.comm, sharded(0), EACH, parts)
        # As a matrix, which lies in memory as the weight does.
        inner = math.prod(W.shape[out_axis + 1 :])
        matrix = reshape(W, (*W.shape[:out_axis], W.shape[out_axis] * inner))
        inner_parts = [inner * n for n in parts]
        matrix = change_layout(matrix, self.comm, sharded(out_axis), EACH, inner_parts)
        shape = (*W.shape[:out_axis], sum(parts), *W.shape[out_axis + 1 :])
        return reshape(matrix, shape), b

    def after(self, layout: Layout, samples: int) -> Change | None:
        if layout == BATCH:
            return None
        parts = [] if layout == REPLICATED else lengths(self.out_shares)
        batch = lengths(shares(samples, self.comm.size))
        return Change(self.comm, BATCH, layout, batch, parts)


def blocks_of(
    comm: Any, inputs: int, outputs: int, grid: Grid, unit: int = 1
) -> ChannelGrid:
    """The blocks of a layer on a grid."""
    kind = GatheredWeight if grid.gathers_weight else ChannelGrid
    return kind(comm, inputs, outputs, grid, unit)


_known_teams: weakref.WeakKeyDictionary[Any, dict[Grid, Any]]
_known_teams = weakref.WeakKeyDictionary()


def _teams(comm: Any, grid: Grid) -> tuple[Any, Any]:
    """The ranks of this one's row of the grid, and of its column.

    Groups cost memory that ranks share: one is made for all layers.
    """
    if grid.inputs == 1:
        return comm, None
    if grid.outputs == 1:
        return None, comm
    known = _known_teams.setdefault(comm, {})
    if grid not in known:
        row = split_by(comm, lambda rank: rank // grid.outputs)
        known[grid] = row, split_by(comm, lambda rank: rank % grid.outputs)
    return known[grid]
