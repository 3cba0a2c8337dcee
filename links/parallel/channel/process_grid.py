"""Which block of a layer's weight each rank multiplies, and what has to be sent.

Ranks form a grid of input blocks × output blocks. A rank gathers the input channels of
its block from the ranks of its row, multiplies them by its block of W, and the partial
outputs of the ranks of a column are added up.

| algorithm | grid | W is sharded by | inputs | outputs |
|---|---|---|---|---|
| column-parallel | 1 × n | outputs | all-gather | |
| row-parallel | n × 1 | inputs | | reduce-scatter |
| 2-D | a × b | both | all-gather in rows | reduce-scatter in columns |
| weight-gathered | | outputs, gathered for use | all-to-all | all-to-all |
| weight-replicated | | nothing; gradients are added up | all-to-all | all-to-all |

The words are Megatron-LM's, for y = x W with the outputs as columns of W.

Source: Dryden et al., Channel and filter parallelism for large-scale CNN training,
SC 2019, where the first three are called stationary-y, -x and -w.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from renga.communicators import Communicator
from renga.core.variable import Variable
from renga.functions import pad, reshape
from renga.parallel.placement import (
    BATCH,
    CHANNEL,
    PARTIAL,
    REPLICATE,
    REPLICATE_SUMMED,
    Placement,
    Shard,
)
from renga.parallel.placement.shard_ranges import shard_ranges, sizes_of
from renga.parallel.placement.sharded_parameter import Block
from renga.parallel.redistribute import Redistribution, with_summed_gradient


class ProcessGrid(NamedTuple):
    """How many blocks the inputs and the outputs of a layer are cut into."""

    input_blocks: int
    output_blocks: int
    gathers_weight: bool = False  # and shards the batch
    replicates_weight: bool = False  # instead of gathering it

    @property
    def algorithm(self) -> str:
        """The name of the algorithm."""
        if self.gathers_weight:
            return "weight-replicated" if self.replicates_weight else "weight-gathered"
        if self.input_blocks == 1:
            return "column-parallel"
        return "row-parallel" if self.output_blocks == 1 else "2-D"

    @property
    def name(self) -> str:
        """The algorithm and, where several grids have it, their blocks: ``2-D 2x4``."""
        name = self.algorithm
        blocks = f" {self.input_blocks}x{self.output_blocks}"
        return name + blocks if name == "2-D" else name


def process_grids(size: int) -> list[ProcessGrid]:
    """All grids of ``size`` ranks, column-parallel first and weight-gathered last."""
    grids = [ProcessGrid(n, size // n) for n in range(1, size + 1) if size % n == 0]
    return grids if size == 1 else [*grids, ProcessGrid(1, size, True)]


def requestable_grids(size: int) -> list[ProcessGrid]:
    """All grids, and the weight-replicated one, which needs the memory of all weights.

    That is what data parallelism does; it is not chosen unless it is requested.
    """
    replicated = [ProcessGrid(1, size, True, True)] if size > 1 else []
    return [*process_grids(size), *replicated]


def requested_grids(request: str, size: int) -> list[ProcessGrid]:
    """The grids of ``size`` ranks with this name or algorithm; there may be none."""
    grids = requestable_grids(size)
    return [grid for grid in grids if request in (grid.name, grid.algorithm)]


def grids_for_groups(candidates: Sequence[ProcessGrid]) -> list[ProcessGrid]:
    """Those for a grouped weight, in which a block of inputs is no rectangle."""
    return [grid for grid in candidates if grid.input_blocks == 1]


class WeightSharding:
    """A layer's channels on a grid: the blocks of each rank, and redistributions.

    Args:
        inputs, outputs: the numbers of channels.
        unit: how many features of the input belong to one channel.
    """

    def __init__(
        self,
        comm: Communicator,
        inputs: int,
        outputs: int,
        grid: ProcessGrid,
        unit: int,
    ) -> None:
        self.comm, self.grid = comm, grid
        self.input_ranges = shard_ranges(inputs, comm.size, unit)
        self.output_ranges = shard_ranges(outputs, comm.size)
        self.row, self.column = divmod(comm.rank, grid.output_blocks)
        # Ranks that gather the same inputs, and ranks whose outputs are added up.
        self.row_comm, self.column_comm = _row_and_column_comms(comm, grid)

    def input_block(self, rank: int) -> list[range]:
        """The inputs that a rank multiplies."""
        first = rank // self.grid.output_blocks * self.grid.output_blocks
        return list(self.input_ranges[first : first + self.grid.output_blocks])

    def output_block(self, rank: int) -> list[range]:
        """The outputs to which a rank contributes."""
        column = rank % self.grid.output_blocks
        return list(self.output_ranges[column :: self.grid.output_blocks])

    def weight_blocks(self, in_axis: int, out_axis: int) -> list[Block]:
        """Each rank's block of a weight with these axes."""
        return [
            Block({in_axis: self.input_block(r), out_axis: self.output_block(r)})
            for r in range(self.comm.size)
        ]

    def output_blocks(self) -> list[Block]:
        """Each rank's block of a bias, or of a weight cut by outputs."""
        return [Block({0: [outputs]}) for outputs in self.output_ranges]

    def redistribute_inputs(
        self, placement: Placement, samples: int
    ) -> Redistribution | None:
        """How this rank gets its block of inputs; None where it has them."""
        comm = self.comm
        if placement == REPLICATE:
            if self.grid.output_blocks > 1:
                return Redistribution(comm, REPLICATE, REPLICATE_SUMMED)
            sizes = sizes_of(self.input_ranges)
            return Redistribution(comm, REPLICATE, CHANNEL, target_sizes=sizes)
        if self.grid.output_blocks == 1:
            return None
        sizes = sizes_of(self.input_block(comm.rank))
        return Redistribution(
            self.row_comm, CHANNEL, REPLICATE_SUMMED, source_sizes=sizes
        )

    def take_input_block(self, x: Variable, placement: Placement) -> Variable:
        """This rank's block of the redistributed inputs."""
        if placement != REPLICATE or 1 in self.grid[:2]:
            return x
        block = self.input_block(self.comm.rank)
        own: Variable = x[:, block[0].start : block[-1].stop]
        return own

    def local_weights(
        self, W: Variable, b: Variable | None, out_axis: int
    ) -> tuple[Variable, Variable | None]:
        """The weight that multiplies the block of inputs, and the bias to be added.

        Of outputs whose bias another rank adds, it is zero.
        """
        if b is None or self.grid.input_blocks == 1:
            return W, b
        sizes = sizes_of(self.output_block(self.comm.rank))
        before, after = sum(sizes[: self.row]), sum(sizes[self.row + 1 :])
        return W, pad(b, [(before, after)], "constant")

    def redistribute_outputs(
        self, placement: Placement, samples: int
    ) -> Redistribution | None:
        """How partial outputs are added up, or else gathered."""
        grid, comm = self.grid, self.comm
        if grid.output_blocks == 1 and placement == REPLICATE:
            return Redistribution(comm, PARTIAL, REPLICATE)
        if grid.input_blocks > 1:
            sizes = sizes_of(self.output_block(comm.rank))
            return Redistribution(
                self.column_comm, PARTIAL, CHANNEL, target_sizes=sizes
            )
        return self._gather_outputs(placement)

    def gather_summed_outputs(self, placement: Placement) -> Redistribution | None:
        """How outputs are gathered that had to be added up before."""
        return self._gather_outputs(placement) if min(self.grid[:2]) > 1 else None

    def _gather_outputs(self, placement: Placement) -> Redistribution | None:
        if placement != REPLICATE:
            return None
        sizes = sizes_of(self.output_ranges)
        return Redistribution(self.comm, CHANNEL, REPLICATE, source_sizes=sizes)


class GatheredWeight(WeightSharding):
    """Each rank multiplies all channels of its shard of the batch.

    Activations are redistributed from channels to samples before, and back after. The
    ranks gather the weight, of which each has its own outputs. Less is sent than with
    any grid where images are large and weights are small.
    """

    def redistribute_inputs(
        self, placement: Placement, samples: int
    ) -> Redistribution | None:
        if placement == BATCH:
            return None
        sizes = [] if placement == REPLICATE else sizes_of(self.input_ranges)
        batch = sizes_of(shard_ranges(samples, self.comm.size))
        return Redistribution(self.comm, placement, BATCH, sizes, batch)

    def local_weights(
        self, W: Variable, b: Variable | None, out_axis: int
    ) -> tuple[Variable, Variable | None]:
        sizes = sizes_of(self.output_ranges)
        if b is not None:
            gather = Redistribution(self.comm, Shard(0), REPLICATE_SUMMED, sizes)
            b = gather.apply(b)
        # W is gathered as a matrix, which has the weight's order in memory.
        inner = math.prod(W.shape[out_axis + 1 :])
        matrix = reshape(W, (*W.shape[:out_axis], W.shape[out_axis] * inner))
        inner_sizes = [inner * n for n in sizes]
        gather = Redistribution(
            self.comm, Shard(out_axis), REPLICATE_SUMMED, inner_sizes
        )
        shape = (*W.shape[:out_axis], sum(sizes), *W.shape[out_axis + 1 :])
        return reshape(gather.apply(matrix), shape), b

    def redistribute_outputs(
        self, placement: Placement, samples: int
    ) -> Redistribution | None:
        if placement == BATCH:
            return None
        sizes = [] if placement == REPLICATE else sizes_of(self.output_ranges)
        batch = sizes_of(shard_ranges(samples, self.comm.size))
        return Redistribution(self.comm, BATCH, placement, batch, sizes)


class ReplicatedWeight(GatheredWeight):
    """Each rank has the whole weight, and multiplies its shard of the batch by it."""

    def weight_blocks(self, in_axis: int, out_axis: int) -> list[Block]:
        return [Block({})] * self.comm.size

    def output_blocks(self) -> list[Block]:
        return [Block({})] * self.comm.size

    def local_weights(
        self, W: Variable, b: Variable | None, out_axis: int
    ) -> tuple[Variable, Variable | None]:
        W = with_summed_gradient(self.comm, W)
        return W, None if b is None else with_summed_gradient(self.comm, b)


def shard_weight(
    comm: Communicator, inputs: int, outputs: int, grid: ProcessGrid, unit: int
) -> WeightSharding:
    """The sharding of a layer by the algorithm of a grid."""
    kind = GatheredWeight if grid.gathers_weight else WeightSharding
    if grid.replicates_weight:
        kind = ReplicatedWeight
    return kind(comm, inputs, outputs, grid, unit)


_known_comms: weakref.WeakKeyDictionary[
    Communicator, dict[ProcessGrid, tuple[Any, Any]]
]
_known_comms = weakref.WeakKeyDictionary()


def _row_and_column_comms(comm: Communicator, grid: ProcessGrid) -> tuple[Any, Any]:
    """The communicators of this rank's row and column of a grid.

    A communicator costs shared memory, so all layers use the same.
    """
    if grid.input_blocks == 1:
        return comm, None
    if grid.output_blocks == 1:
        return None, comm
    known = _known_comms.setdefault(comm, {})
    if grid not in known:
        row = comm.split_by(lambda rank: rank // grid.output_blocks)
        known[grid] = row, comm.split_by(lambda rank: rank % grid.output_blocks)
    return known[grid]
