"""What all layers have in common whose channels are shared out over ranks."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from renga.link import Link
from renga.links.parallel.channel.cost import (
    Cost,
    Layer,
    cheapest,
)
from renga.links.parallel.channel.grid import ChannelGrid, Grid, blocks_of, grids
from renga.links.parallel.channel.overlap import pieces_of_batch, run
from renga.links.parallel.relayout import (
    BATCH,
    CHANNEL,
    LAYOUTS,
    Layout,
    change_layout,
    told_parts,
)
from renga.links.parallel.shard import describe, lengths, shares
from renga.links.parallel.sharded_parameter import Piece, ShardedParameter
from renga.serializer import Deserializer
from renga.utils.type_check import InvalidType
from renga.variable import Variable

_CHANNEL_LAYOUTS = ("replicated", "channel", "batch")


def channel_layout(
    link: str, name: str, layout: str, known: Sequence[str] = _CHANNEL_LAYOUTS
) -> Layout:
    """The layout of that name; ValueError unless it is known."""
    if layout not in known:
        names = f"{', '.join(known[:-1])} or {known[-1]}"
        raise ValueError(f"{link}: expected {name} to be {names}, got {layout!r}")
    return LAYOUTS[layout]


def require_channels(
    link: Link, x: Any, axis: int, own: range, whole: int, layout: Layout
) -> None:
    """Raises InvalidType unless x has the channels of this rank."""
    comm: Any = link.comm  # type: ignore[attr-defined]
    expected = len(own) if layout == CHANNEL else whole
    if x.ndim > axis and x.shape[axis] == expected:
        return
    named = f"{type(link).__name__} {link.name or ''}".rstrip()
    what = describe(own, whole, comm.rank, comm.size, "channels")
    if layout != CHANNEL:
        what = f"all {whole} channels (rank {comm.rank} of {comm.size})"
    raise InvalidType(f"{named}: expected x with {what}, got {x.shape}")


def batch_shares(link: Link, x: Any) -> tuple[range, ...]:
    """The samples that each rank has of a batch of which this one has ``x``.

    Raises:
        InvalidType: it is not shared out as ``shares`` says; on all ranks.
    """
    comm: Any = link.comm  # type: ignore[attr-defined]
    told = told_parts(x, comm, 0)
    batch = shares(sum(told), comm.size)
    for rank, (own, found) in enumerate(zip(batch, told)):
        if len(own) != found:
            named = f"{type(link).__name__} {link.name or ''}".rstrip()
            what = describe(own, sum(told), rank, comm.size, "samples")
            raise InvalidType(f"{named}: expected x with {what}, got {found}")
    return batch


class ChannelLink(Link):
    """A layer with weights whose input and output channels are shared out.

    A derived class says what its weight is like and how to apply a block of it.
    """

    W: Any
    b: Any = None
    # The axes of W that have the inputs and the outputs.
    _in_axis, _out_axis = 1, 0
    _channels: ChannelGrid | None = None
    # What the cost model expects of a step; None while there is no grid.
    cost: Cost | None = None

    def _set_up(
        self,
        comm: Any,
        input_layout: str,
        output_layout: str,
        algorithm: str | None,
        pieces: int | None,
    ) -> None:
        kind = type(self).__name__
        self.comm = comm
        self.input_layout, self.output_layout = input_layout, output_layout
        self._source = channel_layout(kind, "input_layout", input_layout)
        self._target = channel_layout(kind, "output_layout", output_layout)
        self._wanted = algorithm
        self.pieces = pieces
        allowed = sorted({grid.algorithm for grid in grids(comm.size)})
        if algorithm is not None and algorithm not in allowed:
            raise ValueError(
                f"{kind}: expected algorithm to be one of {', '.join(allowed)} on "
                f"{comm.size} ranks, got {algorithm!r}"
            )

    @property
    def algorithm(self) -> str | None:
        """What the ranks multiply; None while the number of inputs is not known."""
        return None if self._channels is None else self._channels.grid.algorithm

    def _lay_out(self, inputs: int, outputs: int, layer: Layer, unit: int = 1) -> None:
        """Chooses what this rank multiplies."""
        candidates = self._candidates()
        layouts = self._source, self._target
        grid, self.cost = cheapest(layer, candidates, self.comm, *layouts)
        self._channels = blocks_of(self.comm, inputs, outputs, grid, unit)

    def _candidates(self) -> list[Grid]:
        every = grids(self.comm.size)
        if self._wanted is None:
            return every
        return [grid for grid in every if grid.algorithm == self._wanted]

    def _bias(self, outputs: Any, initial: Any) -> ShardedParameter:
        """A bias of which each rank has that of its own outputs."""
        parts = shares(outputs, self.comm.size)
        pieces = [Piece({0: [part]}) for part in parts]
        initial = 0 if initial is None else initial
        return ShardedParameter(self.comm, initial, pieces, (outputs,))

    def _run(self, x: Any, compute: Any, before: Any = None) -> Variable:
        """What ``compute(x, W, b)`` makes of blocks, with all that has to travel."""
        if BATCH in (self._source, self._target):
            return self._run_samples(x, compute, before)
        return self._run_channels(x, compute, before, self._source, self._target)

    def _run_samples(self, x: Any, compute: Any, before: Any) -> Variable:
        """The same where x or y is shared out by samples."""
        channels, comm = self._channels, self.comm
        assert channels is not None
        source, target = self._source, self._target
        if channels.grid.gathers_weight and source == target:
            return compute(x, *channels.weights(self.W, self.b, self._out_axis))
        batch = batch_shares(self, x) if source == BATCH else shares(len(x), comm.size)
        samples = lengths(batch)
        if channels.grid.gathers_weight:
            W, b = channels.weights(self.W, self.b, self._out_axis)
            change = channels.before(source, sum(samples))
            y = compute(x if change is None else change.apply(x), W, b)
            change = channels.after(target, sum(samples))
            return y if change is None else change.apply(y)
        if source == BATCH:
            parts, source = lengths(channels.in_shares), CHANNEL
            x = change_layout(x, comm, BATCH, CHANNEL, samples, parts)
        if target != BATCH:
            return self._run_channels(x, compute, before, source, target)
        y = self._run_channels(x, compute, before, source, CHANNEL)
        parts = lengths(channels.out_shares)
        return change_layout(y, comm, CHANNEL, BATCH, parts, samples)

    def _run_channels(
        self, x: Any, compute: Any, before: Any, source: Layout, target: Layout
    ) -> Variable:
        channels = self._channels
        assert channels is not None
        W, b = channels.weights(self.W, self.b, self._out_axis)
        pieces = self.pieces
        if pieces is None:
            assert self.cost is not None
            pieces = pieces_of_batch(self.comm, self.cost)
        if channels.grid.gathers_weight and pieces > 1:  # as much of each for all ranks
            pieces = max(1, min(pieces, len(x) // self.comm.size))
        y = run(
            lambda block, *weights: compute(channels.block(block, source), *weights),
            x,
            W,
            b,
            functools.partial(before or channels.before, source),
            functools.partial(channels.after, target),
            pieces,
        )
        change = channels.lastly(target)
        return y if change is None else change.apply(y)

    def serialize(self, serializer: Any) -> None:
        """Saves or loads the whole parameters; every rank has to take part."""
        if not self.W.is_initialized and isinstance(serializer, Deserializer):
            data = serializer("W", None)
            if data is not None:
                for param in self.params():
                    if not param.is_initialized:
                        serializer.on_failure(
                            functools.partial(param._restore_values, None)
                        )
                self._initialize_by(data.shape)
        super().serialize(serializer)

    def _initialize_by(self, shape: tuple[int, ...]) -> None:
        """Initializes W, of which a file tells the whole's shape."""
        raise NotImplementedError

    @property
    def _parallel_specs(self) -> Iterator[tuple[str, Any]]:
        yield "input_layout", self.input_layout
        yield "output_layout", self.output_layout
        yield "algorithm", self.algorithm
        yield "rank", f"{self.comm.rank} of {self.comm.size}"
