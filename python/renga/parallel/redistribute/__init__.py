"""Changes of placement: the same variable, sharded another way, with gradients.

| from | to | forward | backward |
|---|---|---|---|
| ``Shard(i)`` | ``Shard(j)`` | all-to-all | all-to-all |
| ``Shard(i)`` | ``Replicate()`` | all-gather | slice |
| ``Shard(i)`` | ``Replicate(summed_gradient=True)`` | all-gather | reduce-scatter |
| ``Partial()`` | ``Shard(i)`` | reduce-scatter | all-gather |
| ``Partial()`` | ``Replicate()`` | all-reduce | identity |
| ``Replicate()`` | ``Shard(i)`` | slice | all-gather |
| ``Replicate()`` | ``Replicate(summed_gradient=True)`` | identity | all-reduce |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.core.function_node import FunctionNode
from renga.core.types import Array, ArrayLike, Grads, Indexes, Variables
from renga.core.variable import Variable, as_variable
from renga.functions.noise.seed import give_stream
from renga.parallel.placement import (
    PARTIAL,
    REPLICATE,
    REPLICATE_SUMMED,
    Partial,
    Placement,
    Shard,
    as_placement,
)
from renga.parallel.placement.shard_ranges import shard_ranges, sizes_of
from renga.parallel.redistribute.axis_collectives import (
    Wait,
    all_gather,
    all_reduce,
    all_to_all,
    reduce_scatter,
    split_axis,
)
from renga.utils.type_check import InvalidType


def redistribute(
    x: Variable | numpy.ndarray,
    comm: Communicator,
    source: str | Placement,
    target: str | Placement,
    extent: int | None = None,
) -> Variable:
    """A variable with another placement; every rank calls it.

    It can be differentiated any number of times.

    Args:
        source, target: ``Replicate()``, ``Shard(axis)``, or a name: ``replicated``,
            ``batch``, ``channel``, ``rows``, ``columns`` or ``features``. The source
            may be ``Partial("sum")``, the target ``Replicate(summed_gradient=True)``.
        extent: of the whole axis along which ``x`` is sharded, as
            :func:`shard_ranges` shards it; by default the ranks tell each other the
            sizes of their shards, which may be any.

    Shapes:
        x, result: (N, C, H, W), or any; this rank's shard of a sharded axis

    Raises:
        ValueError: there is no such placement, or it is none to change from or to.
        InvalidType: ``x`` is not this rank's shard of ``extent``.
    """
    x = as_variable(x)
    source, target = (_of(x, as_placement(p)) for p in (source, target))
    _require_possible(source, target)
    if source == target or comm.size == 1:
        return x
    source_sizes: Sequence[int] = ()
    if isinstance(source, Shard):
        if extent is None:
            source_sizes = all_gather_size(x, comm, source.axis)
        else:
            source_sizes = sizes_of(shard_ranges(extent, comm.size))
        _require_size(comm, source.axis, x.shape[source.axis], source_sizes)
    target_sizes: Sequence[int] = ()
    if isinstance(target, Shard):
        target_sizes = sizes_of(shard_ranges(x.shape[target.axis], comm.size))
    return Redistribution(comm, source, target, source_sizes, target_sizes).apply(x)


def _of(x: Variable, placement: Placement) -> Placement:
    """The placement with an axis that counts from the first one."""
    if isinstance(placement, Shard) and placement.axis < 0:
        return Shard(placement.axis + x.ndim)
    return placement


def with_summed_gradient(comm: Communicator, x: Variable) -> Variable:
    """A replicated variable, as a weight, for each rank to use with its own data.

    Its gradient is the sum of what all ranks find, on every rank.
    """
    x = as_variable(x)
    change = Redistribution(comm, REPLICATE, REPLICATE_SUMMED)
    if comm.size == 1 or x.ndim < 4:
        return change.apply(x)
    # The gradient is sent as a vector: what has the axes of an image is sent, and
    # arrives, with its channels last in memory, and a gradient in that order is slow to
    # add to a weight.
    flat = change.apply(_core.ops.reshape(x, (-1,)))
    return _core.ops.reshape(flat, x.shape)


class Redistribution(NamedTuple):
    """A change of placement, with the sizes of the ranks' shards before and after."""

    comm: Communicator
    source: Placement
    target: Placement
    source_sizes: Sequence[int] = ()
    target_sizes: Sequence[int] = ()

    def adjoint(self) -> Redistribution:
        """The change of placement of gradients, in the backward pass."""
        source, target = self.target.gradient, self.source.gradient
        return Redistribution(
            self.comm, source, target, self.target_sizes, self.source_sizes
        )

    def apply(self, x: Variable) -> Variable:
        """The variable ``x`` with the other placement."""
        if self.comm.size == 1:
            return as_variable(x)
        return Redistribute(self).apply((x,))[0]

    def start(self, x: numpy.ndarray, wait: bool) -> Wait:
        """Starts to redistribute an array.

        Args:
            wait: whether the collective is done on return.

        Returns:
            A function that waits for the result and returns it.
        """
        comm, source, target = self.comm, self.source, self.target
        if source == target or comm.size == 1:
            return lambda: x
        if isinstance(source, Shard):
            if isinstance(target, Shard):
                axes = source.axis, target.axis
                sizes = self.source_sizes, self.target_sizes
                return all_to_all(comm, x, axes, sizes, wait)
            return all_gather(comm, x, source.axis, self.source_sizes, wait)
        if source == PARTIAL:
            if isinstance(target, Shard):
                return reduce_scatter(comm, x, target.axis, self.target_sizes, wait)
            return all_reduce(comm, x, wait)
        if isinstance(target, Shard):
            own = split_axis(x, target.axis, self.target_sizes)[comm.rank]
            return lambda: own
        return lambda: x


def sent_bytes(change: Redistribution, shape: Sequence[int]) -> int:
    """What each rank sends, where shards of different sizes are padded to the largest.

    Args:
        shape: of the variable, of float32; along sharded axes the sum of the shards'
            sizes is used.
    """
    source, target, others = change.source, change.target, change.comm.size - 1
    whole, largest = list(shape), list(shape)
    for placement, sizes in (
        (source, change.source_sizes),
        (target, change.target_sizes),
    ):
        if isinstance(placement, Shard):
            whole[placement.axis], largest[placement.axis] = sum(sizes), max(sizes)
    if source == PARTIAL and not isinstance(target, Shard):
        return 2 * others * math.prod(whole) * 4 // change.comm.size
    if source == PARTIAL or (isinstance(source, Shard) and source != target):
        return others * math.prod(largest) * 4
    return 0


def _require_possible(source: Placement, target: Placement) -> None:
    if source == REPLICATE_SUMMED:
        raise ValueError(f"redistribute: expected another source, got {source}")
    if isinstance(target, Partial) and source != target:
        raise ValueError(
            f"redistribute: expected {source} to become replicated or sharded, got "
            f"{target}"
        )


def all_gather_size(x: ArrayLike, comm: Communicator, axis: int) -> list[int]:
    """The ranks' sizes of an axis; every rank calls it."""
    sizes: list[int] = comm.all_gather(numpy.array(x.shape[axis])).tolist()
    return sizes


def _require_size(
    comm: Communicator, axis: int, own: int, sizes: Sequence[int]
) -> None:
    if own != sizes[comm.rank]:
        raise InvalidType(
            f"redistribute: expected {sizes[comm.rank]} of {sum(sizes)} along axis "
            f"{axis} on rank {comm.rank} of {comm.size}, got {own}"
        )


class Redistribute(FunctionNode):
    """The graph node of a redistribution."""

    def __init__(self, redistribution: Redistribution) -> None:
        self.redistribution = redistribution
        is_replicated = redistribution.target == REPLICATE
        give_stream(self, redistribution.comm, is_replicated)

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return (self.redistribution.start(inputs[0], wait=True)(),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        adjoint, gy = self.redistribution.adjoint(), grad_outputs[0]
        if _core.backprop_enabled():
            return (adjoint.apply(gy),)
        return (Variable(adjoint.start(gy.array, wait=True)()),)
