"""What parallel convolutions and deconvolutions have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy

from renga.functions import concat
from renga.functions.window import as_pair
from renga.links.convolution.filters import require_groups
from renga.links.parallel.channel.cost import Layer, image_layer
from renga.links.parallel.channel.grid import Grid, grouped_grids
from renga.links.parallel.channel.link import ChannelLink, require_channels
from renga.links.parallel.relayout import CHANNEL, REPLICATED, Change, Layout
from renga.links.parallel.shard import lengths
from renga.links.parallel.sharded_parameter import ShardedParameter
from renga.variable import Variable, as_variable

Pair = tuple[int, int]


class GroupPiece(NamedTuple):
    """Outputs of this rank that lie in one group, or fill whole ones."""

    first: int  # the group
    groups: int
    outputs: range  # counted from this rank's first one


def group_pieces(own: range, per_group: int) -> list[GroupPiece]:
    """Cuts a range of outputs where it enters or leaves a group halfway."""
    pieces, start = [], own.start
    while start < own.stop:
        group, inside = divmod(start, per_group)
        count = (own.stop - start) // per_group if inside == 0 else 0
        stop = start + count * per_group
        if count == 0:
            stop = min(own.stop, (group + 1) * per_group)
        part = range(start - own.start, stop - own.start)
        pieces.append(GroupPiece(group, max(1, count), part))
        start = stop
    return pieces


class ChannelImages(ChannelLink):
    """A link that multiplies windows of images whose channels are shared out."""

    def _build(
        self,
        channels: tuple[int | None, Any],
        ksize: Any,
        window: tuple[Any, Any, Any, int],
        nobias: bool,
        initial: tuple[Any, Any],
        insize: tuple[int, int, int],
    ) -> None:
        self.in_channels, self.out_channels = channels
        self.ksize, self.insize = ksize, insize
        stride, pad, dilate, groups = window
        self.stride, self.pad = as_pair(stride), as_pair(pad)
        self.dilate, self.groups = as_pair(dilate), int(groups)
        with self.init_scope():
            self.W = ShardedParameter(self.comm, initial[0], groups=self._regroup)
            if self.in_channels is not None:
                self._initialize(self.in_channels)
            if not nobias:
                self.b = self._bias(self.out_channels, initial[1])

    @property
    def _regroup(self) -> int:
        """Groups of a weight whose outputs are not one axis."""
        return 1

    @property
    def printable_specs(self) -> Iterator[tuple[str, Any]]:
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

    def _candidates(self) -> list[Grid]:
        candidates = super()._candidates()
        if self.groups == 1:
            return candidates
        candidates = grouped_grids(candidates)
        if not candidates:
            raise ValueError(
                f"{type(self).__name__}: expected stationary-y for {self.groups} "
                f"groups, got {self._wanted}"
            )
        return candidates

    def _initialize(self, in_channels: int) -> None:
        require_groups(in_channels, self.out_channels, self.groups)
        shape = self._weight_shape(in_channels)
        self._lay_out(in_channels, self.out_channels, self._layer(in_channels))
        channels = self._channels
        assert channels is not None
        if self.groups > 1:
            pieces = channels.out_pieces()
        else:
            pieces = channels.pieces(self._in_axis, self._out_axis)
        self.in_channels = in_channels
        self.W.lay_out(pieces, shape)
        self.W.initialize(shape)

    def _layer(self, in_channels: int) -> Layer:
        n, *extents = self.insize
        pixels = n * extents[0] * extents[1]
        out_pixels = n * self._outsize(0) * self._outsize(1)
        x, y = (in_channels, pixels), (self.out_channels, out_pixels)
        window = as_pair(self.ksize), self.stride, self.dilate
        return image_layer(x, y, *window, self.groups)

    def forward(self, x: Any) -> Variable:
        """The layer's output for ``x``."""
        x = as_variable(x)
        if self._channels is None:
            self._initialize(self._whole_channels(x))
        channels = self._channels
        assert channels is not None and self.in_channels is not None
        own = channels.in_shares[self.comm.rank]
        require_channels(self, x, 1, own, self.in_channels, self._source)
        if self.groups > 1 and not channels.grid.gathers_weight:
            return self._run(x, self._grouped, self._before_groups)
        return self._run(x, self._whole_groups)

    def _whole_groups(self, x: Any, W: Any, b: Any = None) -> Variable:
        return self._convolve(x, W, b, self.groups)

    def _whole_channels(self, x: Any) -> int:
        if self._source != CHANNEL:
            return x.shape[1]
        return int(self.comm.all_gather(numpy.array(x.shape[1])).sum())

    def _before_groups(self, layout: Layout, samples: int) -> Change | None:
        """What brings this rank the inputs of its outputs' groups."""
        channels = self._channels
        assert channels is not None
        if not self._is_local():
            return channels.before(layout, samples)
        if layout != REPLICATED:
            return None
        parts = lengths(channels.in_shares)
        return Change(self.comm, REPLICATED, CHANNEL, to_parts=parts)

    def _grouped(self, x: Any, W: Any, b: Any = None) -> Variable:
        """This rank's outputs, convolved group by group where they share some."""
        channels, rank = self._channels, self.comm.rank
        assert channels is not None and self.in_channels is not None
        inputs = self.in_channels // self.groups
        start = channels.in_shares[rank].start if self._is_local() else 0
        few = min(x.shape[1], inputs)
        per_group = self.out_channels // self.groups
        cut = [group_pieces(share, per_group) for share in channels.out_shares]
        ys = []
        # As many pieces on every rank, if empty ones: where graphs are alike, so is the
        # order in which the ranks communicate on the way back.
        for k in range(max(1, *map(len, cut))):
            outputs, count = slice(0), 1
            part = x[:, :few]
            if k < len(cut[rank]):
                piece = cut[rank][k]
                first, count = piece.first * inputs - start, piece.groups
                part = x[:, first : first + count * inputs]
                outputs = slice(piece.outputs.start, piece.outputs.stop)
            own_b = None if b is None else b[outputs]
            own_W = W[outputs, : part.shape[1] // count]
            ys.append(self._convolve(part, own_W, own_b, count))
        return concat(ys, 1)

    def _is_local(self) -> bool:
        """Whether every rank has the inputs of its outputs."""
        channels = self._channels
        assert channels is not None and self.in_channels is not None
        inputs = self.in_channels // self.groups
        outputs = self.out_channels // self.groups
        return all(
            x.start * outputs == y.start * inputs
            and x.stop * outputs == y.stop * inputs
            and y.start % outputs == y.stop % outputs == 0
            for x, y in zip(channels.in_shares, channels.out_shares)
        )
