"""Samples that are divided among groups of ranks: how a model is made and run."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.types import Array
from renga.core.variable import Variable
from renga.functions import reshape
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.multi_node_batch_normalization import (
    multi_node_batch_normalization,
)
from renga.parallel.conversion.arguments import arrays_in, map_arrays
from renga.parallel.conversion.replacement import LinkReplacement
from renga.parallel.conversion.strategy import LinkStrategy, ParallelRun, Sharded
from renga.parallel.conversion.tracked_link import tracked_class
from renga.parallel.groups import create_groups
from renga.parallel.placement import BATCH, REPLICATE, REPLICATE_SUMMED, Shard
from renga.parallel.placement.shard_ranges import (
    as_slice,
    shard_range,
    shard_ranges,
    sizes_of,
)
from renga.parallel.placement.tracker import PlacementTracker, tracking
from renga.parallel.redistribute import Redistribution
from renga.parallel.samples.summed_gradients import summing_gradients
from renga.utils.type_check import InvalidType


class SampleRun(ParallelRun):
    """Runs models: samples are divided among ranks, and outputs gathered.

    Arrays among the arguments that are as long as the first one are samples along axis
    0; others are replicated.

    Args:
        comm: all ranks, which call the model with the same arguments.
        data: the ranks with the same part of the model and other samples.
        inner: the ranks with the same samples, which share the model.
        stacked: of each output, whether axis 0 has all samples of one time step after
            the other, rather than all rows of one sample after the other.
    """

    reads_shards = True

    def __init__(
        self,
        comm: Communicator,
        data: Communicator,
        inner: Communicator,
        stacked: Sequence[bool],
    ) -> None:
        super().__init__(comm)
        self.data, self.inner, self.stacked = data, inner, stacked
        self.first_stream = 1 + data.rank * (inner.size + 1)

    @classmethod
    def create(
        cls, comm: Communicator, groups: int, stacked: Sequence[bool]
    ) -> SampleRun:
        """Splits the ranks into groups with samples of their own; every rank calls it.

        Ranks of a group have consecutive numbers.
        """
        split = create_groups(comm, data=groups, channel=comm.size // groups)
        return cls(comm, split.data, split.channel, stacked)

    def shards(self, inputs: Sequence[Any]) -> tuple[Array, ...]:
        """This rank's samples of arrays."""
        samples = _samples("parallelize", inputs, self.data.size)
        own = as_slice(shard_range(samples, self.data.size, self.data.rank))
        return tuple(x[own] if len(x) == samples else x for x in inputs)

    @contextlib.contextmanager
    def sharding(
        self, model: Link, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sharded:
        data, name = self.data, type(model).__name__
        samples = _samples(name, arrays_in((args, kwargs)), data.size)
        sizes = sizes_of(shard_ranges(samples, data.size))
        own = as_slice(shard_range(samples, data.size, data.rank))

        def shard(x: Array) -> Any:
            is_sharded = x.ndim > 0 and len(x) == samples
            if not isinstance(x, Variable):
                return x[own] if is_sharded else x
            target = BATCH if is_sharded else REPLICATE_SUMMED
            change = Redistribution(data, REPLICATE, target, target_sizes=sizes)
            return change.apply(x)

        args, kwargs = map_arrays(shard, (args, kwargs))
        stacked = iter(self.stacked)

        def gather(result: Any) -> Any:
            return map_arrays(
                lambda y: self._gathered(name, y, sizes, next(stacked, False)), result
            )

        note_read = self.first_calls.note_read
        tracker = PlacementTracker(lambda x: x, BATCH, model, note_read, least_axes=1)
        tracker.note_shards((args, kwargs))
        with tracking(tracker), summing_gradients(data, model, tracker, (args, kwargs)):
            yield args, kwargs, gather

    def _gathered(
        self, name: str, y: Any, sizes: Sequence[int], is_stacked: bool
    ) -> Any:
        data, own = self.data, sizes[self.data.rank]
        is_variable = isinstance(y, Variable) and y.ndim > 0
        rows, more = divmod(len(y), own) if is_variable else (0, 1)
        if more:
            raise InvalidType(
                f"{name}: expected it to return Variables with a multiple of {own} "
                f"rows, got {type(y).__name__} {getattr(y, 'shape', '')}"
            )
        if not is_stacked:
            extents = [rows * n for n in sizes]
            return Redistribution(data, BATCH, REPLICATE, extents).apply(y)
        y = reshape(y, (rows, own, *y.shape[1:]))
        y = Redistribution(data, Shard(1), REPLICATE, sizes).apply(y)
        return reshape(y, (rows * sum(sizes), *y.shape[2:]))

    def class_of(self, link: Link) -> type[Link]:
        is_normalization = isinstance(link, BatchNormalization)
        return tracked_class(link, self, _OverSamples if is_normalization else None)


class _OverSamples(BatchNormalization):
    """Batch normalization by the statistics of all ranks' samples."""

    parallel_run: SampleRun

    def _normalize(self, x: Any, gamma: Any, beta: Any, decay: float) -> Variable:
        comm = self.parallel_run.data
        statistics = self.eps, self.avg_mean, self.avg_var, decay, self.axis
        return multi_node_batch_normalization(x, gamma, beta, comm, *statistics)


def _samples(name: str, arrays: Sequence[Any], ranks: int) -> int:
    """The number of samples.

    Raises:
        InvalidType: there are fewer than ranks.
    """
    shape = next((x.shape for x in arrays), ())
    samples = shape[0] if shape else 0
    if samples < ranks:
        raise InvalidType(
            f"{name}: expected a first argument with {ranks} samples or more, got "
            f"{tuple(shape) if arrays else 'no array'}"
        )
    return int(samples)


class SampleStrategy(LinkStrategy):
    """Groups of ranks have samples of their own, and share the model.

    Args:
        inner: how the ranks of a group share it.
        groups, stacked: as for :meth:`SampleRun.create`.
    """

    def __init__(
        self, inner: LinkStrategy, groups: int, stacked: Sequence[bool]
    ) -> None:
        self.inner, self.groups, self.stacked = inner, groups, stacked

    def divide(
        self, model: Link, comm: Communicator, example: Sequence[object]
    ) -> tuple[list[LinkReplacement], SampleRun]:
        run = SampleRun.create(comm, self.groups, self.stacked)
        found, _ = self.inner.divide(model, run.inner, run.shards(example))
        return found, run
