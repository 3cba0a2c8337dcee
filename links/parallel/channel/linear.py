"""ParallelLinear: a fully connected layer whose features are sharded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from renga.communicators import Communicator
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable, as_variable
from renga.functions import linear, reshape
from renga.links.connection.linear import Linear
from renga.links.parallel.channel.cost_model import linear_size
from renga.links.parallel.channel.link import (
    ChannelLink,
    LinkChoice,
    require_channels,
    values_of,
)
from renga.links.parallel.forms import parallel_form
from renga.parallel.placement.sharded_parameter import ShardedParameter
from renga.utils.extents import check_sizes


@parallel_form(Linear, "channel")
class ParallelLinear(ChannelLink):
    """A fully connected layer of which each rank has a block of the weight.

    It computes what Linear does, for any number of ranks. W is sharded by its outputs
    (``column-parallel``), its inputs (``row-parallel``) or both (``2-D``).

    Args:
        comm, input_layout, output_layout, algorithm, pieces: as for
            ParallelConvolution2D.
        in_size, out_size, nobias, initialW, initial_bias: as for Linear.
        pixels: how many of the input's features belong to one channel, and so to one
            rank.
        batch: the number of samples that the cost model assumes.

    Shapes:
        x: (*batch, C, ...) with in_size features, or this rank's shard of the batch or
            of axis C
        y: (*batch, out_size), or this rank's shard of it
        W: this rank's block of (out_size, in_size)
        b: this rank's shard of (out_size,), or None with ``nobias``

    Raises:
        ValueError: a layout or algorithm is unknown.
    """

    def __init__(
        self,
        comm: Communicator,
        in_size: int | None,
        out_size: int | None = None,
        nobias: bool = False,
        initialW: Initial | None = None,
        initial_bias: Initial | None = None,
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
        check_sizes(self, in_size=in_size, out_size=out_size)
        self._set_up(comm, input_layout, output_layout, algorithm, pieces)
        self.in_size = in_size
        self.out_size: Any = out_size
        self.pixels, self.batch = pixels, batch
        with self.init_scope():
            self.W = ShardedParameter(comm, initialW)
            if in_size is not None:
                self._initialize(in_size)
            if not nobias:
                self.b = self._bias(self.out_size, initial_bias)

    @classmethod
    def from_link(
        cls, link: Linear, comm: Communicator, choice: LinkChoice, call: Any = None
    ) -> ParallelLinear:
        """This rank's block of a serial link.

        Args:
            choice: how it is computed.
            call: one of ``link``, which tells the sizes of its input, if it is known.
        """
        outputs, inputs = link.W.shape
        options: dict[str, Any] = {}
        if call is not None:
            options["batch"] = math.prod(call.x_shape[: call.batch_axes])
            options["pixels"] = call.pixels
        # The features of a sequence are the channels of each position.
        layouts = ["channel" if a == "features" else a for a in choice.layouts]
        return cls(
            comm,
            inputs,
            outputs,
            link.b is None,
            values_of(link.W),
            values_of(link.b),
            input_layout=layouts[0],
            output_layout=layouts[1],
            algorithm=choice.algorithm,
            pieces=choice.pieces,
            **options,
        )

    @property
    def printable_specs(self) -> Iterator[tuple[str, object]]:
        yield "in_size", self.in_size
        yield "out_size", self.out_size
        yield "nobias", self.b is None
        yield from self._parallel_specs

    def _initialize(self, in_size: int) -> None:
        self.in_size = in_size
        layer = linear_size(in_size, self.out_size, self.batch)
        sharding = self._choose_grid(in_size, self.out_size, layer, self.pixels)
        shape = (self.out_size, in_size)
        self.W.set_blocks(sharding.weight_blocks(1, 0), shape)
        self.W.initialize(shape)

    def _initialize_by(self, shape: tuple[int, ...]) -> None:
        self._initialize(shape[1])

    def forward(self, x: ArrayLike, n_batch_axes: int = 1) -> Variable:
        """The output for ``x``, whose first ``n_batch_axes`` axes are the batch's."""
        x = as_variable(x)
        batch = x.shape[:n_batch_axes]
        features = math.prod(x.shape[n_batch_axes:])
        if self._sharding is None:
            self.pixels = math.prod(x.shape[n_batch_axes + 1 :])
            self._initialize(self._all_inputs(features))
        sharding = self._sharding
        assert sharding is not None and self.in_size is not None
        x = reshape(x, (math.prod(batch), features))
        own = sharding.input_ranges[self.comm.rank]
        require_channels(self, x, 1, own, self.in_size, self._source)
        y = self._run(x, linear)
        return y if n_batch_axes == 1 else reshape(y, (*batch, y.shape[1]))
