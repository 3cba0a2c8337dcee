"""Shards of the parameters in memory that the ranks of a node share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from renga import _communicators
from renga.communicators import Communicator
from renga.core.optimizer import GradientMethod, Optimizer
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.optimizer_hooks.norm import GradientClipping, GradientHardClipping
from renga.optimizer_hooks.penalties import Lasso, WeightDecay
from renga.parallel.asynchronous.server.gradient import Gradient
from renga.parallel.asynchronous.server.shard_optimizer import Change, ShardOptimizer
from renga.parallel.asynchronous.server.shard_server import rate_of
from renga.utils.meta import is_method_of

_LINE_BYTES = 64
_HOOKS = {GradientClipping, GradientHardClipping, Lasso, WeightDecay}


class SharedShard:
    """A shard that every rank updates itself, one at a time.

    The ranks have one each over the same memory. What it has is read and changed in
    a ``with`` statement, which waits for the others.

    Args:
        optimizer: makes this rank's updates.
        memory: of ``bytes_of(optimizer)``.
    """

    def __init__(self, optimizer: ShardOptimizer, memory: Array) -> None:
        shapes = _shared_with(optimizer)
        lock, numbers, self._counts, *self._arrays = _parts(memory, shapes)
        self._lock: Any = _communicators.SharedLock(lock)
        self._numbers = numbers  # updates, and the sum of their lags
        self.optimizer = optimizer

    @staticmethod
    def bytes_of(optimizer: ShardOptimizer) -> int:
        """The size of the memory."""
        lines = sum(-(-x.nbytes // _LINE_BYTES) for x in _shared_with(optimizer))
        return lines * _LINE_BYTES

    def initialize(self) -> None:
        """Writes what this rank's optimizer has; one rank does it, before all others.

        The memory is zero before.
        """
        for x, y in zip(self._arrays, self.optimizer.all_arrays()):
            x[...] = y
        self._counts[:] = self.optimizer.counts
        self._lock.initialize()

    def attach(self) -> None:
        """Makes the optimizer update the memory, which is initialized."""
        self.optimizer.use_memory(self._arrays)

    def __enter__(self) -> None:
        """Waits until no other rank uses the shard.

        A rank that is killed meanwhile leaves it, perhaps with a part of its update.
        """
        self._lock.__enter__()

    def __exit__(self, *args: object) -> None:
        self._lock.__exit__()

    @property
    def version(self) -> int:
        """How many updates there have been."""
        return int(self._numbers[0])

    @property
    def version_lag(self) -> float:
        """The mean over the updates."""
        updates, lags = self._numbers[:2].tolist()
        return lags / updates if updates else 0.0

    def update(self, gradient: Gradient, version: int, staleness_aware: bool) -> float:
        """Applies a gradient; returns the factor of its learning rate.

        Args:
            gradient: of the pieces.
            version: the number of updates in the parameters of the gradient.
            staleness_aware: whether the factor depends on it.
        """
        lag = self.version - version
        rate = rate_of(lag, staleness_aware)
        self.optimizer.counts = self._counts.tolist()
        self.optimizer.update(gradient, rate)
        self._counts[:] = self.optimizer.counts
        self._numbers += (1, lag)
        return rate

    def change(self, change: Change) -> None:
        """Makes a change that this rank's caller has made."""
        self.optimizer.change(change)
        if change.states is not None:
            for x, y in zip(self._arrays, self.optimizer.all_arrays()):
                x[...] = y
            self.attach()
            self._counts[:] = self.optimizer.counts

    def states(self) -> dict[str, Any]:
        """Copies of the pieces and of the states of their rules."""
        self.optimizer.counts = self._counts.tolist()
        return self.optimizer.states()


def allocate(
    comm: Communicator, optimizers: Sequence[ShardOptimizer], hosts: Sequence[int]
) -> list[SharedShard]:
    """Shards with the values that rank 0 has; every rank calls it.

    Args:
        comm: the ranks of one node.
        optimizers: of the shards.
        hosts: the rank among whose memory each shard is.

    Returns:
        They are none if there is no such memory.
    """
    filled = [0] * comm.size
    offsets = []
    for host, optimizer in zip(hosts, optimizers):
        offsets.append(filled[host])
        filled[host] += SharedShard.bytes_of(optimizer)
    window = comm.window(max(filled), numpy.uint8)
    if not comm.window_layout([window]):
        return []
    shards = [
        SharedShard(optimizer, comm.window_of_peer(window, host)[offset:])
        for optimizer, host, offset in zip(optimizers, hosts, offsets)
    ]
    if comm.rank == 0:
        for shard in shards:
            shard.initialize()
    comm.barrier()
    for shard in shards:
        shard.attach()
    return shards


def can_share(optimizer: Optimizer, params: Sequence[Parameter]) -> bool:
    """Whether all that updates remember is in arrays and in counts of updates."""
    return (
        is_method_of(optimizer, GradientMethod, "update", "reallocate_cleared_grads")
        and all(type(hook) in _HOOKS for _, _, hook in optimizer.timed_hooks())
        and all(
            isinstance(param.array, numpy.ndarray)
            and param.dtype in (numpy.float32, numpy.float64)
            and (param.update_rule is None or _can_share_state(param.update_rule))
            for param in params
        )
    )


def _can_share_state(rule: Any) -> bool:
    is_enabled, rule.enabled = rule.enabled, True
    try:
        can: bool = rule.is_maskable()
    finally:
        rule.enabled = is_enabled
    return can


def _shared_with(optimizer: ShardOptimizer) -> list[Array]:
    """Arrays like those in the memory: a lock, numbers, counts, and the optimizer's."""
    lock = numpy.empty(_LINE_BYTES, numpy.uint8)
    numbers = numpy.empty(2, numpy.int64)
    counts = numpy.empty(len(optimizer.counts), numpy.int64)
    return [lock, numbers, counts, *optimizer.all_arrays()]


def _parts(memory: Array, arrays: Sequence[Array]) -> Iterator[Array]:
    """An array like each of these, at the next cache line."""
    begin = 0
    for x in arrays:
        yield memory[begin : begin + x.nbytes].view(x.dtype).reshape(x.shape)
        begin += -(-x.nbytes // _LINE_BYTES) * _LINE_BYTES
