"""ParallelLinear: a fully connected layer shared out over ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy

from renga.functions import linear, reshape
from renga.links.parallel.channel.cost import linear_layer
from renga.links.parallel.channel.link import ChannelLink, require_channels
from renga.links.parallel.relayout import CHANNEL
from renga.links.parallel.sharded_parameter import ShardedParameter
from renga.variable import Variable, as_variable


class ParallelLinear(ChannelLink):
    """A fully connected layer of which each rank holds a part of the weight.

    It computes what Linear does, whatever the number of ranks: by columns of y
    (``stationary-y``), of x (``stationary-x``) or both (``stationary-w``).

    Args:
        comm, input_layout, output_layout, algorithm, pieces: as for
            ParallelConvolution2D.
        in_size, out_size, nobias, initialW, initial_bias: as for Linear.
        pixels: how many of the input's features belong to one channel, which has them
            on one rank.
        batch: how many rows of x the cost model counts on.

    Shapes:
        x: (*batch, *any), where the latter multiply to in_size, or this rank's
            channels of it, the first of the latter axes
        y: (*batch, out_size), or this rank's features of it
        W: this rank's part of (out_size, in_size)
        b: this rank's part of (out_size,), or None with ``nobias``

    Raises:
        ValueError: a layout or algorithm is unknown.
    """

    def __init__(
        self,
        comm: Any,
        in_size: int | None,
        out_size: int | None = None,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
        *,
        input_layout: str = "replicated",
        output_layout: str = "replicated",
        algorithm: str | None = None,
        pieces: int | None = None,
        pixels: int = 1,
        batch: int = 64,
    ) -> None:
        super().__init__()
        if out_size is None:
            in_size, out_size = None, in_size
        self._set_up(comm, input_layout, output_layout, algorithm, pieces)
        self.in_size = in_size
        self.out_size: Any = out_size
        self.pixels, self.batch = pixels, batch
        with self.init_scope():
            self.W = ShardedParameter(comm, initialW)
            if in_size is not None:
                self._initialize(in_size)
            if not nobias:
                self.b = self._bias(out_size, initial_bias)

    @property
    def printable_specs(self) -> Iterator[tuple[str, Any]]:
        yield "in_size", self.in_size
        yield "out_size", self.out_size
        yield "nobias", self.b is None
        yield from self._parallel_specs

    def _initialize(self, in_size: int) -> None:
        self.in_size = in_size
        layer = linear_layer(in_size, self.out_size, self.batch)
        self._lay_out(in_size, self.out_size, layer, self.pixels)
        assert self._channels is not None
        shape = (self.out_size, in_size)
        self.W.lay_out(self._channels.pieces(1, 0), shape)
        self.W.initialize(shape)

    def _initialize_by(self, shape: tuple[int, ...]) -> None:
        self._initialize(shape[1])

    def forward(self, x: Any, n_batch_axes: int = 1) -> Variable:
        """The output for ``x``, whose first ``n_batch_axes`` axes are the batch's."""
        x = as_variable(x)
        batch = x.shape[:n_batch_axes]
        own = math.prod(x.shape[n_batch_axes:])
        if self._channels is None:
            self.pixels = math.prod(x.shape[n_batch_axes + 1 :])
            self._initialize(self._whole_size(own))
        channels = self._channels
        assert channels is not None and self.in_size is not None
        x = reshape(x, (math.prod(batch), own))
        share = channels.in_shares[self.comm.rank]
        require_channels(self, x, 1, share, self.in_size, self._source)
        y = self._run(x, linear)
        return y if n_batch_axes == 1 else reshape(y, (*batch, y.shape[1]))

    def _whole_size(self, own: int) -> int:
        if self._source != CHANNEL:
            return own
        return int(self.comm.all_gather(numpy.array(own)).sum())
