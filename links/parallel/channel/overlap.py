"""A layer computed in chunks of the batch: some are sent while others are computed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy

from renga._core import backprop_enabled
from renga.communicators import Communicator
from renga.core.function_node import FunctionNode
from renga.core.gradients import grad_of_shards
from renga.core.types import Array, Grads, Indexes, Variables
from renga.core.variable import Variable
from renga.functions.noise.seed import give_stream
from renga.parallel.placement import REPLICATE
from renga.parallel.placement.memory_format import empty_image
from renga.parallel.placement.shard_ranges import as_slice, shard_ranges
from renga.parallel.placement.whole_reads import reads_own_shards
from renga.parallel.redistribute import Redistribution
from renga.parallel.redistribute.axis_collectives import Wait, split_axis
from renga.parallel.redistribute.cost import StepCost

# This makes one from a number of samples, or None where nothing has to be sent.
RedistributionOf = Callable[[int], Optional[Redistribution]]
_CHUNKS = 4
_CORES = os.cpu_count() or 1  # asking takes as long as a short message


def run(
    compute: Callable[..., Variable],
    x: Variable,
    W: Variable,
    b: Variable | None,
    before: RedistributionOf,
    after: RedistributionOf,
    chunks: int,
) -> Variable:
    """``after(compute(before(x), W, b))``.

    Args:
        before, after: the redistributions of inputs and outputs.
        chunks: of the batch; with 0, communication and computation do not overlap.
    """
    if chunks > 0:
        inputs = (x, W) if b is None else (x, W, b)
        return OverlappedLayer(compute, before, after, chunks).apply(inputs)[0]
    samples = len(x)
    return _apply(after(samples), compute(_apply(before(samples), x), W, b))


def number_of_chunks(comm: Communicator, cost: StepCost) -> int:
    """Into how many chunks to cut the batch; 0 where overlap would not help.

    Ranks that share memory copy with the cores that they compute with: without as many
    cores again, communication in the background takes longer than at once. Chunks cost
    time too; one chunk still overlaps the backward pass.
    """
    is_one_node = comm.intra_size == comm.size
    if is_one_node and _CORES < 2 * comm.intra_size:
        return 0
    return _CHUNKS if cost.communication > cost.computation / 4 else 1


class OverlappedLayer(FunctionNode):
    """What ``run`` computes, of inputs (x, W, b) or (x, W).

    Chunks of x and gy are sent while others are computed, and the gradient of x is
    reduced while those of W and b are computed.
    """

    def __init__(
        self,
        compute: Callable[..., Variable],
        before: RedistributionOf,
        after: RedistributionOf,
        chunks: int,
    ) -> None:
        self.compute, self.before, self.after = compute, before, after
        self.chunks = chunks
        redistribution = after(0) or before(0)
        if redistribution is not None:
            is_replicated = redistribution.target == REPLICATE
            give_stream(self, redistribution.comm, is_replicated)

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        x, *weights = inputs
        self.retain_inputs(range(len(inputs)))
        self.ranges = [own for own in shard_ranges(len(x), self.chunks) if len(own)]
        self.ranges = self.ranges or [range(0)]
        self.weights = [Variable(w) for w in weights]
        self.graphs: list[tuple[Variable, Variable]] = []
        # A single chunk cannot overlap with another.
        is_single = len(self.ranges) == 1
        arriving = [
            _start(self.before(len(r)), x[as_slice(r)], is_single) for r in self.ranges
        ]
        leaving = []
        for samples, wait in zip(self.ranges, arriving):
            block = Variable(wait())
            y = self.compute(block, *self.weights)
            if backprop_enabled():
                self.graphs.append((block, y))
            leaving.append(_start(self.after(len(samples)), y.array, is_single))
        return (_concatenated([wait() for wait in leaving]),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        if backprop_enabled():
            return self._differentiable(target_input_indexes, grad_outputs)
        gy = grad_outputs[0].array
        is_single = len(self.ranges) == 1
        arriving = [
            _start(_adjoint(self.after(len(r))), gy[as_slice(r)], is_single)
            for r in self.ranges
        ]
        gys, leaving = [], []
        for samples, wait, (block, y) in zip(self.ranges, arriving, self.graphs):
            gys.append(Variable(wait()))
            if 0 in target_input_indexes:
                (gx,) = grad_of_shards([y], [block], [gys[-1]])
                leaving.append(_start(_adjoint(self.before(len(samples))), gx.array))
        found: dict[int, Any] = {}
        wanted = [i for i in target_input_indexes if i > 0]
        for gy_chunk, (_, y) in zip(gys, self.graphs):
            grads = grad_of_shards(
                [y], [self.weights[i - 1] for i in wanted], [gy_chunk]
            )
            for i, g in zip(wanted, grads):
                found[i] = found[i] + g if i in found else g
        if leaving:
            found[0] = Variable(_concatenated([wait() for wait in leaving]))
        return tuple(found[i] for i in target_input_indexes)

    @reads_own_shards
    def _differentiable(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """The gradients by differentiable functions, for those of higher order."""
        x, W, *b = self.get_retained_inputs()
        around = self.before, self.after
        y = run(self.compute, x, W, b[0] if b else None, *around, chunks=0)
        targets = [(x, W, *b)[i] for i in target_input_indexes]
        return tuple(
            grad_of_shards([y], targets, grad_outputs, enable_double_backprop=True)
        )


def _start(
    redistribution: Redistribution | None, x: numpy.ndarray, wait: bool = False
) -> Wait:
    return (lambda: x) if redistribution is None else redistribution.start(x, wait)


def _adjoint(redistribution: Redistribution | None) -> Redistribution | None:
    return None if redistribution is None else redistribution.adjoint()


def _apply(redistribution: Redistribution | None, x: Variable) -> Variable:
    return x if redistribution is None else redistribution.apply(x)


def _concatenated(chunks: Sequence[numpy.ndarray]) -> numpy.ndarray:
    """Chunks of a batch, concatenated; images with their channels last in memory."""
    if len(chunks) == 1:
        return chunks[0]
    y = empty_image((sum(map(len, chunks)), *chunks[0].shape[1:]), chunks[0])
    destinations = split_axis(y, 0, [len(chunk) for chunk in chunks])
    for destination, chunk in zip(destinations, chunks):
        destination[...] = chunk
    return y
