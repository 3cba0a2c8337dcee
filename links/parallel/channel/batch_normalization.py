"""ParallelBatchNormalization: normalization of channels shared out over ranks."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy

from renga import initializers
from renga.functions import fixed_batch_normalization
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.normalization.precise import with_dtype
from renga.links.parallel.channel.link import (
    batch_shares,
    channel_layout,
    require_channels,
)
from renga.links.parallel.multi_node_normalization import (
    multi_node_batch_normalization,
)
from renga.links.parallel.relayout import (
    BATCH,
    CHANNEL,
    EACH,
    change_layout,
    sharded,
)
from renga.links.parallel.shard import lengths, shares
from renga.links.parallel.sharded_parameter import Piece, ShardedParameter
from renga.serializer import Deserializer
from renga.variable import Variable, as_variable


class ParallelBatchNormalization(BatchNormalization):
    """``BatchNormalization`` by channels: each rank normalizes its own.

    No message is needed where x and y are shared out by ``channel``. Where both are by
    ``batch``, the ranks merge the statistics of their samples. Files hold the whole
    parameters and statistics; every rank has to take part in saving them.

    Args:
        comm: the communicator of the ranks.
        size: the number of channels, which are the second axis of x.
        decay, ..., initial_avg_var: as for BatchNormalization.
        input_layout, output_layout: ``channel``, ``batch`` or ``replicated``.

    Shapes:
        x, y: (N, size, ...), or this rank's channels or samples of it
        gamma, beta, avg_mean, avg_var: this rank's part of (size,)

    Raises:
        ValueError: a layout is unknown.
    """

    def __init__(
        self,
        comm: Any,
        size: int,
        decay: float = 0.9,
        eps: float = 2e-5,
        dtype: Any = None,
        use_gamma: bool = True,
        use_beta: bool = True,
        initial_gamma: Any = None,
        initial_beta: Any = None,
        initial_avg_mean: Any = None,
        initial_avg_var: Any = None,
        *,
        input_layout: str = "channel",
        output_layout: str = "channel",
    ) -> None:
        kind = type(self).__name__
        self._source = channel_layout(kind, "input_layout", input_layout)
        self._target = channel_layout(kind, "output_layout", output_layout)
        self.comm = comm
        self.input_layout, self.output_layout = input_layout, output_layout
        self.size = size
        self._shares = shares(size, comm.size)
        pieces = [Piece({0: [part]}) for part in self._shares]
        # Statistics are cut and put together as a parameter of their shape is.
        statistics = ShardedParameter(comm, 0, pieces, (size,))
        statistics.name = "statistics"  # not trained: it knows who holds which part
        self._statistics = statistics
        super().__init__(
            size,
            decay,
            eps,
            dtype,
            use_gamma,
            use_beta,
            initial_gamma,
            initial_beta,
            None,
            initial_avg_mean,
            initial_avg_var,
        )

    @property
    def algorithm(self) -> str:
        """How it finds the statistics."""
        merges = self._source == self._target == BATCH
        return "common statistics" if merges else "local"

    def _parameter(self, initial: Any, default: float) -> ShardedParameter:
        initializer = with_dtype(
            default if initial is None else initial, self._highprec_dtype
        )
        pieces = self._statistics.pieces
        return ShardedParameter(self.comm, initializer, pieces, (self.size,))

    def _initialize(self, shape: Any) -> None:
        self.avg_mean = self._statistic(self._initial_avg_mean, shape)
        self.avg_var = self._statistic(self._initial_avg_var, shape)

    def _statistic(self, initial: Any, shape: Any) -> Any:
        whole = initializers.generate_array(
            with_dtype(initial, self._highprec_dtype), (self.size,), numpy
        )
        return self._statistics.piece_of(whole)

    @property
    def printable_specs(self) -> Iterator[tuple[str, Any]]:
        yield "size", self.size
        yield from list(super().printable_specs)[1:]
        yield "input_layout", self.input_layout
        yield "output_layout", self.output_layout

    def forward(self, x: Any, *, finetune: bool = False, **kwargs: Any) -> Variable:
        """The normalized ``x``."""
        x = as_variable(x)
        own = self._shares[self.comm.rank]
        require_channels(self, x, 1, own, self.size, self._source)
        if self._source == self._target == BATCH:
            return super().forward(x, finetune=finetune, **kwargs)
        comm, parts, samples = self.comm, lengths(self._shares), [0]
        if BATCH in (self._source, self._target):
            told = self._source == BATCH
            batch = batch_shares(self, x) if told else shares(len(x), comm.size)
            samples = lengths(batch)
        if self._source != CHANNEL:
            x = change_layout(x, comm, self._source, CHANNEL, samples, parts)
        y = super().forward(x, finetune=finetune, **kwargs)
        if self._target != CHANNEL:
            y = change_layout(y, comm, CHANNEL, self._target, parts, samples)
        return y

    def _normalize(self, x: Any, gamma: Any, beta: Any, decay: float) -> Variable:
        if not self._source == self._target == BATCH:
            return super()._normalize(x, gamma, beta, decay)
        return multi_node_batch_normalization(
            x,
            gamma,
            beta,
            self.comm,
            self.eps,
            self.avg_mean,
            self.avg_var,
            decay,
            common=True,
            first=self._shares[self.comm.rank].start,
        )

    def _fixed(self, x: Any, gamma: Any, beta: Any) -> Variable:
        if not self._source == self._target == BATCH:
            return super()._fixed(x, gamma, beta)
        features, parts = sharded(0), lengths(self._shares)
        gamma, beta, mean, var = (
            change_layout(a, self.comm, features, EACH, parts)
            for a in (gamma, beta, self.avg_mean, self.avg_var)
        )
        return fixed_batch_normalization(x, gamma, beta, mean, var, self.eps)

    def serialize(self, serializer: Any) -> None:
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
