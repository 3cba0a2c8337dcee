"""ParallelBatchNormalization: batch normalization whose channels are sharded."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy

from renga import initializers
from renga.backends import cuda
from renga.communicators import Communicator
from renga.core.backend import get_array_types
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.core.types import Array, ArrayLike, DTypeLike, Initial
from renga.core.variable import Variable, as_variable
from renga.functions import fixed_batch_normalization
from renga.initializers import with_dtype
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.channel.link import (
    CallPlacement,
    LinkChoice,
    batch_ranges,
    channel_placement,
    require_channels,
)
from renga.links.parallel.forms import parallel_form
from renga.links.parallel.multi_node_batch_normalization import (
    multi_node_batch_normalization,
)
from renga.parallel.placement import BATCH, CHANNEL, REPLICATE_SUMMED, Shard
from renga.parallel.placement.shard_ranges import shard_ranges, sizes_of
from renga.parallel.placement.sharded_parameter import Block, ShardedParameter, like
from renga.parallel.placement.whole_reads import reads_own_shards
from renga.parallel.redistribute import Redistribution


@parallel_form(BatchNormalization, "channel")
class ParallelBatchNormalization(BatchNormalization):
    """``BatchNormalization`` of which each rank normalizes its own channels.

    Nothing is sent where x and y are sharded by ``channel``. Where both are sharded by
    ``batch``, the ranks combine the statistics of their samples. Files hold the whole
    parameters and statistics; every rank has to take part in saving them.

    Args:
        comm: the communicator of the ranks.
        size: the number of channels, which are the second axis of x.
        decay, ..., initial_avg_var: as for BatchNormalization.
        input_layout, output_layout: ``channel``, ``batch`` or ``replicated``.

    Shapes:
        x, y: (N, size, ...), or this rank's shard of channels or samples
        gamma, beta, avg_mean, avg_var: this rank's shard of (size,)

    Raises:
        ValueError: a layout is unknown.
    """

    _source, _target = CallPlacement(), CallPlacement()

    def __init__(
        self,
        comm: Communicator,
        size: int,
        decay: float = 0.9,
        eps: float = 2e-5,
        dtype: DTypeLike | None = None,
        use_gamma: bool = True,
        use_beta: bool = True,
        initial_gamma: Initial | None = None,
        initial_beta: Initial | None = None,
        initial_avg_mean: Initial | None = None,
        initial_avg_var: Initial | None = None,
        *,
        input_layout: str = "channel",
        output_layout: str = "channel",
    ) -> None:
        kind = type(self).__name__
        self._source = channel_placement(kind, "input_layout", input_layout)
        self._target = channel_placement(kind, "output_layout", output_layout)
        self.comm = comm
        self.input_layout, self.output_layout = input_layout, output_layout
        self.size = size
        self._ranges = shard_ranges(size, comm.size)
        blocks = [Block({0: [own]}) for own in self._ranges]
        # Not trained: it shards the statistics like a parameter of their shape.
        statistics = ShardedParameter(comm, 0, blocks, (size,))
        statistics.name = "statistics"
        self._statistics = statistics
        affine = use_gamma, use_beta, initial_gamma, initial_beta
        averages = None, initial_avg_mean, initial_avg_var
        super().__init__(size, decay, eps, dtype, *affine, *averages)

    @classmethod
    def from_link(
        cls,
        link: BatchNormalization,
        comm: Communicator,
        choice: LinkChoice,
        call: object = None,
    ) -> ParallelBatchNormalization:
        """This rank's channels of a serial link."""
        new = cls(
            comm,
            len(link.avg_mean),
            link.decay,
            link.eps,
            link.avg_mean.dtype,
            link.gamma is not None,
            link.beta is not None,
            None if link.gamma is None else link.gamma.array,
            None if link.beta is None else link.beta.array,
            link.avg_mean,
            link.avg_var,
            input_layout=choice.layouts[0],
            output_layout=choice.layouts[1],
        )
        new.N = link.N
        return new

    @property
    def algorithm(self) -> str:
        """How the statistics are computed."""
        return "common statistics" if self._is_by_sample else "local"

    @property
    def _is_by_sample(self) -> bool:
        return self._source == self._target == BATCH

    def _parameter(self, initial: Any, default: float) -> ShardedParameter:
        initializer = with_dtype(
            default if initial is None else initial, self._highprec_dtype
        )
        blocks = self._statistics.blocks
        return ShardedParameter(self.comm, initializer, blocks, (self.size,))

    def _initialize_params(self, shape: Any) -> None:
        self.avg_mean = self._init_array(self._initial_avg_mean, 0, shape)
        self.avg_var = self._init_array(self._initial_avg_var, 1, shape)

    def _init_array(self, initializer: Any, default_value: float, size: Any) -> Any:
        initial = default_value if initializer is None else initializer
        whole = initializers.generate_array(
            with_dtype(initial, self._highprec_dtype), (self.size,), numpy
        )
        return self._statistics.block_of(whole)

    def _full_persistent(self, name: str) -> Any:
        value: Any = vars(self)[name]
        is_array = isinstance(value, get_array_types())
        return like(value, self._statistics.whole(value)) if is_array else value

    def own_part_of(self, name: str, array: Array) -> Array:
        whole = cuda.to_cpu(array)
        self._statistics.keep_loaded(name, whole)
        return like(array, self._statistics.block_of(whole))

    def forget_loaded(self) -> None:
        super().forget_loaded()
        self._statistics.forget_loaded()

    def loaded_persistent(self, name: str) -> object:
        return self._statistics.loaded_statistic(name, vars(self)[name])

    @property
    def printable_specs(self) -> Iterator[tuple[str, object]]:
        yield "size", self.size
        yield from list(super().printable_specs)[1:]
        yield "input_layout", self.input_layout
        yield "output_layout", self.output_layout

    @reads_own_shards
    def forward(
        self, x: ArrayLike, *, finetune: bool = False, **kwargs: object
    ) -> Variable:
        """The normalized ``x``."""
        x = as_variable(x)
        own = self._ranges[self.comm.rank]
        require_channels(self, x, 1, own, self.size, self._source)
        if self._is_by_sample:
            return super().forward(x, finetune=finetune, **kwargs)
        comm, source, target = self.comm, self._source, self._target
        sizes, samples = sizes_of(self._ranges), [0]
        if source == BATCH:
            samples = sizes_of(batch_ranges(self, x))
        elif target == BATCH:
            samples = sizes_of(shard_ranges(len(x), comm.size))
        if source != CHANNEL:
            x = Redistribution(comm, source, CHANNEL, samples, sizes).apply(x)
        y = super().forward(x, finetune=finetune, **kwargs)
        if target != CHANNEL:
            y = Redistribution(comm, CHANNEL, target, sizes, samples).apply(y)
        return y

    def _normalize(self, x: Any, gamma: Any, beta: Any, decay: float) -> Variable:
        if not self._is_by_sample:
            return super()._normalize(x, gamma, beta, decay)
        statistics = self.eps, self.avg_mean, self.avg_var, decay
        first = self._ranges[self.comm.rank].start
        return multi_node_batch_normalization(
            x, gamma, beta, self.comm, *statistics, sum_gradients=True, first=first
        )

    def _fixed(self, x: Any, gamma: Any, beta: Any) -> Variable:
        if not self._is_by_sample:
            return super()._fixed(x, gamma, beta)
        sizes = sizes_of(self._ranges)
        gather = Redistribution(self.comm, Shard(0), REPLICATE_SUMMED, sizes)
        gamma, beta, mean, var = map(
            gather.apply, (gamma, beta, self.avg_mean, self.avg_var)
        )
        return fixed_batch_normalization(x, gamma, beta, mean, var, self.eps)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the whole parameters and statistics."""
        names, self._persistent = self._persistent, set()
        super().serialize(serializer)
        self._persistent = names
        whole = self._statistics.full_array_serializer(serializer)
        for name in sorted(names):
            old = getattr(self, name)
            setattr(self, name, whole(name, old))
            if isinstance(serializer, Deserializer):
                serializer.on_failure(functools.partial(setattr, self, name, old))
