"""What parallel convolutions and deconvolutions have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from renga.communicators import Communicator
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions import concat
from renga.functions.window import as_pair, window_2d
from renga.links.convolution.filters import require_groups, with_in_channels
from renga.links.parallel.channel.cost_model import LayerSize, convolution_size
from renga.links.parallel.channel.link import (
    ChannelLink,
    LinkChoice,
    require_channels,
    values_of,
)
from renga.links.parallel.channel.process_grid import ProcessGrid, grids_for_groups
from renga.parallel.placement import CHANNEL, REPLICATE, Placement
from renga.parallel.placement.shard_ranges import sizes_of
from renga.parallel.placement.sharded_parameter import ShardedParameter
from renga.parallel.redistribute import Redistribution
from renga.utils.extents import check_sizes


class GroupSpan(NamedTuple):
    """Outputs of this rank that belong to one group, or make up whole groups."""

    first: int  # the first group
    groups: int
    outputs: range  # counted from this rank's first output


def group_spans(own: range, outputs_per_group: int) -> list[GroupSpan]:
    """Cuts this rank's outputs where they start or end inside a group."""
    spans, start = [], own.start
    while start < own.stop:
        group, inside = divmod(start, outputs_per_group)
        count = (own.stop - start) // outputs_per_group if inside == 0 else 0
        stop = start + count * outputs_per_group
        if count == 0:
            stop = min(own.stop, (group + 1) * outputs_per_group)
        outputs = range(start - own.start, stop - own.start)
        spans.append(GroupSpan(group, max(1, count), outputs))
        start = stop
    return spans


class ParallelConvolution(ChannelLink):
    """A convolution or transposed convolution of images whose channels are sharded."""

    @classmethod
    def from_link(
        cls, link: Any, comm: Communicator, choice: LinkChoice, call: Any = None
    ) -> Any:
        """This rank's block of a serial link.

        Args:
            choice: how it is computed.
            call: one of ``link``, which tells the sizes of its input, if it is known.
        """
        first, second, *kernel = link.W.shape
        channels = first, second * link.groups
        options = cls._options_of(link)
        if call is not None:
            options["insize"] = (call.x_shape[0], *call.x_shape[2:])
        make: Any = cls
        return make(
            comm,
            channels[cls._in_axis],
            channels[cls._out_axis],
            tuple(kernel),
            link.stride,
            link.pad,
            link.b is None,
            initialW=values_of(link.W),
            initial_bias=values_of(link.b),
            dilate=link.dilate,
            groups=link.groups,
            input_layout=choice.layouts[0],
            output_layout=choice.layouts[1],
            algorithm=choice.algorithm,
            pieces=choice.pieces,
            **options,
        )

    @classmethod
    def _options_of(cls, link: Any) -> dict[str, Any]:
        """Further arguments for what a serial link computes."""
        return {}

    def _build(
        self,
        channels_and_ksize: tuple[Any, Any, Any],
        window: tuple[Any, Any, Any, int],
        nobias: bool,
        initial: tuple[Any, Any],
        insize: tuple[int, int, int],
    ) -> None:
        in_channels, out_channels, ksize = with_in_channels(*channels_and_ksize)
        check_sizes(self, in_channels=in_channels, out_channels=out_channels)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.ksize, self.insize = ksize, insize
        window = window_2d(type(self).__name__, *window)
        self.stride, self.pad, self.dilate, groups = window
        self.groups = int(groups)
        with self.init_scope():
            self.W = ShardedParameter(
                self.comm, initial[0], groups=self._regrouped_groups
            )
            if self.in_channels is not None:
                self._initialize(self.in_channels)
            if not nobias:
                self.b = self._bias(self.out_channels, initial[1])

    def _kernel_extents(self) -> tuple[int, int]:
        return as_pair(self.ksize, type(self).__name__, "ksize")

    @property
    def _regrouped_groups(self) -> int:
        """Groups of a weight whose outputs are not one axis; 1 if they are."""
        return 1

    @property
    def printable_specs(self) -> Iterator[tuple[str, object]]:
        yield "in_channels", self.in_channels
        yield "out_channels", self.out_channels
        yield "ksize", self.ksize
        yield "stride", self.stride
        yield "pad", self.pad
        yield "nobias", self.b is None
        yield "dilate", self.dilate
        yield "groups", self.groups
        yield from self._parallel_specs

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        raise NotImplementedError

    def _outsize(self, axis: int) -> int:
        """The extent of the output for ``insize``."""
        raise NotImplementedError

    def _convolve(self, x: Any, W: Any, b: Any, groups: int) -> Variable:
        """The layer applied to some of its channels."""
        raise NotImplementedError

    def _candidates(self) -> list[ProcessGrid]:
        candidates = super()._candidates()
        if self.groups == 1:
            return candidates
        candidates = grids_for_groups(candidates)
        if not candidates:
            raise ValueError(
                f"{type(self).__name__}: expected algorithm to be column-parallel or "
                f"weight-gathered for {self.groups} groups, got {self._requested}"
            )
        return candidates

    def _initialize(self, in_channels: int) -> None:
        require_groups(self, in_channels, self.out_channels, self.groups)
        shape = self._weight_shape(in_channels)
        layer = self._layer_size(in_channels)
        sharding = self._choose_grid(in_channels, self.out_channels, layer)
        if self.groups > 1:
            blocks = sharding.output_blocks()
        else:
            blocks = sharding.weight_blocks(self._in_axis, self._out_axis)
        self.in_channels = in_channels
        self.W.set_blocks(blocks, shape)
        self.W.initialize(shape)

    def _layer_size(self, in_channels: int) -> LayerSize:
        n, *extents = self.insize
        pixels = n * extents[0] * extents[1]
        out_pixels = n * self._outsize(0) * self._outsize(1)
        x, y = (in_channels, pixels), (self.out_channels, out_pixels)
        window = self._kernel_extents(), self.stride, self.dilate
        return convolution_size(x, y, *window, self.groups)

    def forward(self, x: ArrayLike) -> Variable:
        """The layer's output for ``x``."""
        x = as_variable(x)
        if self._sharding is None:
            self._initialize(self._all_inputs(x.shape[1]))
        sharding = self._sharding
        assert sharding is not None and self.in_channels is not None
        own = sharding.input_ranges[self.comm.rank]
        require_channels(self, x, 1, own, self.in_channels, self._source)
        if self.groups > 1 and not sharding.grid.gathers_weight:
            return self._run(
                x, self._convolve_own_groups, self._redistribute_group_inputs
            )
        return self._run(x, self._convolve_all_groups)

    def _convolve_all_groups(self, x: Any, W: Any, b: Any = None) -> Variable:
        return self._convolve(x, W, b, self.groups)

    def _redistribute_group_inputs(
        self, placement: Placement, samples: int
    ) -> Redistribution | None:
        """How this rank gets the inputs of its outputs' groups."""
        sharding = self._sharding
        assert sharding is not None
        if not self._has_group_inputs():
            return sharding.redistribute_inputs(placement, samples)
        if placement != REPLICATE:
            return None
        sizes = sizes_of(sharding.input_ranges)
        return Redistribution(self.comm, REPLICATE, CHANNEL, target_sizes=sizes)

    def _convolve_own_groups(self, x: Any, W: Any, b: Any = None) -> Variable:
        """This rank's outputs, one convolution for each span of groups."""
        sharding, rank = self._sharding, self.comm.rank
        assert sharding is not None and self.in_channels is not None
        inputs = self.in_channels // self.groups
        start = sharding.input_ranges[rank].start if self._has_group_inputs() else 0
        any_inputs = x[:, : min(x.shape[1], inputs)]
        per_group = self.out_channels // self.groups
        spans = [group_spans(own, per_group) for own in sharding.output_ranges]
        ys = []
        # All ranks make as many convolutions, if empty ones: then their graphs are
        # alike, and they communicate in the same order in the backward pass.
        for k in range(max(1, *map(len, spans))):
            outputs, groups = slice(0), 1
            block = any_inputs
            if k < len(spans[rank]):
                span = spans[rank][k]
                first, groups = span.first * inputs - start, span.groups
                block = x[:, first : first + groups * inputs]
                outputs = slice(span.outputs.start, span.outputs.stop)
            own_b = None if b is None else b[outputs]
            own_W = W[outputs, : block.shape[1] // groups]
            ys.append(self._convolve(block, own_W, own_b, groups))
        return concat(ys, 1)

    def _has_group_inputs(self) -> bool:
        """Whether every rank's own inputs are those of its outputs' groups."""
        sharding = self._sharding
        assert sharding is not None and self.in_channels is not None
        inputs = self.in_channels // self.groups
        outputs = self.out_channels // self.groups
        return all(
            x.start * outputs == y.start * inputs
            and x.stop * outputs == y.stop * inputs
            and y.start % outputs == y.stop % outputs == 0
            for x, y in zip(sharding.input_ranges, sharding.output_ranges)
        )
