"""What layers have in common whose channels are sharded."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy

from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.core.variable import Variable
from renga.functions.util.recomputation import remembered
from renga.initializers import Constant
from renga.links.parallel.channel.cost_model import LayerSize, cheapest_grid
from renga.links.parallel.channel.overlap import number_of_chunks, run
from renga.links.parallel.channel.process_grid import (
    ProcessGrid,
    WeightSharding,
    process_grids,
    requestable_grids,
    requested_grids,
    shard_weight,
)
from renga.parallel.placement import BATCH, CHANNEL, LAYOUTS, REPLICATE, Placement
from renga.parallel.placement.shard_ranges import describe_range, shard_ranges, sizes_of
from renga.parallel.placement.sharded_parameter import Block, ShardedParameter
from renga.parallel.placement.tracker import is_called_by_program
from renga.parallel.placement.whole_reads import reads_own_shards
from renga.parallel.redistribute import Redistribution, all_gather_size
from renga.parallel.redistribute.cost import StepCost
from renga.utils.type_check import InvalidType

Layouts = tuple[str, str]  # of the input and the output


class LinkChoice(NamedTuple):
    """How a link is to be computed."""

    layouts: Layouts
    algorithm: str | None = None  # the cheapest one
    pieces: int | None = None  # as many chunks as the machine and a cost model suggest
    is_kept: bool = False  # as the serial link, on every rank


def values_of(param: Parameter | None) -> Constant | None:
    """An initializer that gives the values of a parameter; None for none."""
    return None if param is None else Constant(param.array, param.dtype)


class CallPlacement:
    """The placement of what a link takes or gives when its model calls it.

    A program may call a link of a parallel model itself, such as in its loss function:
    then the link takes and gives whole arrays.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, link: Any, owner: type) -> Placement:
        is_of_model = link.parallel_run is not None
        if is_of_model and remembered(lambda: is_called_by_program(link)):
            return REPLICATE
        placement: Placement = vars(link)[self._name]
        return placement

    def __set__(self, link: Link, placement: Placement) -> None:
        vars(link)[self._name] = placement


_CHANNEL_LAYOUTS = ("replicated", "channel", "batch")


def channel_placement(
    link: str, argument: str, layout: str, allowed: Sequence[str] = _CHANNEL_LAYOUTS
) -> Placement:
    """The placement of a link's argument.

    Raises:
        ValueError: the layout is not allowed.
    """
    if layout not in allowed:
        names = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
        raise ValueError(f"{link}: expected {argument} to be {names}, got {layout!r}")
    return LAYOUTS[layout]


class RankedLink(Protocol):
    """A link that has ranks."""

    comm: Communicator
    name: str | None


def require_channels(
    link: RankedLink,
    x: Variable,
    axis: int,
    own: range,
    channels: int,
    placement: Placement,
) -> None:
    """Checks the channels of ``x``.

    Args:
        own: the channels of this rank.
        channels: the number of all channels.

    Raises:
        InvalidType: ``x`` has not this rank's channels, or not all where they are not
            sharded.
    """
    comm = link.comm
    expected = len(own) if placement == CHANNEL else channels
    if x.ndim > axis and x.shape[axis] == expected:
        return
    what = describe_range(own, channels, comm.rank, comm.size, "channels")
    if placement != CHANNEL:
        what = f"all {channels} channels (rank {comm.rank} of {comm.size})"
    raise InvalidType(f"{_name(link)}: expected x with {what}, got {x.shape}")


def batch_ranges(link: RankedLink, x: Variable) -> tuple[range, ...]:
    """Each rank's samples of a batch of which this rank has ``x``.

    Raises:
        InvalidType: on all ranks, if the batch is not sharded as by ``shard_ranges``.
    """
    comm = link.comm
    sizes = all_gather_size(x, comm, 0)
    batch = shard_ranges(sum(sizes), comm.size)
    for rank, (own, size) in enumerate(zip(batch, sizes)):
        if len(own) != size:
            what = describe_range(own, sum(sizes), rank, comm.size, "samples")
            raise InvalidType(f"{_name(link)}: expected x with {what}, got {size}")
    return batch


def _name(link: RankedLink) -> str:
    return f"{type(link).__name__} {link.name or ''}".rstrip()


class ChannelLink(Link):
    """A layer with a weight whose input and output channels are sharded.

    A derived class says what its weight is like and how to apply a block of it.
    """

    W: Any
    b: Any = None
    comm: Communicator
    _source, _target = CallPlacement(), CallPlacement()
    # The axes of W that count inputs and outputs.
    _in_axis, _out_axis = 1, 0
    # None, as the cost, until the number of inputs is known.
    _sharding: WeightSharding | None = None
    cost: StepCost | None = None

    def _set_up(
        self,
        comm: Communicator,
        input_layout: str,
        output_layout: str,
        algorithm: str | None,
        pieces: int | None,
    ) -> None:
        kind = type(self).__name__
        self.comm = comm
        self.input_layout, self.output_layout = input_layout, output_layout
        self._source = channel_placement(kind, "input_layout", input_layout)
        self._target = channel_placement(kind, "output_layout", output_layout)
        self._requested = algorithm
        self.pieces = pieces
        request = self._requested
        if request is not None and not requested_grids(request, comm.size):
            allowed = sorted({grid.name for grid in requestable_grids(comm.size)})
            raise ValueError(
                f"{kind}: expected algorithm to be one of {', '.join(allowed)} on "
                f"{comm.size} ranks, got {algorithm!r}"
            )

    @property
    def algorithm(self) -> str | None:
        """The name of the algorithm; None while the number of inputs is not known."""
        return None if self._sharding is None else self._sharding.grid.algorithm

    def _choose_grid(
        self, inputs: int, outputs: int, layer: LayerSize, unit: int = 1
    ) -> WeightSharding:
        """Chooses the cheapest grid that is allowed, and shards the weight by it."""
        grids, placements = self._candidates(), (self._source, self._target)
        grid, self.cost = cheapest_grid(layer, grids, self.comm, *placements)
        self._sharding = shard_weight(self.comm, inputs, outputs, grid, unit)
        return self._sharding

    def _candidates(self) -> list[ProcessGrid]:
        if self._requested is None:
            return process_grids(self.comm.size)
        return requested_grids(self._requested, self.comm.size)

    def _all_inputs(self, own: int) -> int:
        """The number of inputs of all ranks, of which this rank's x has ``own``."""
        if self._source != CHANNEL:
            return own
        return int(self.comm.all_gather(numpy.array(own)).sum())

    def _bias(self, outputs: Any, initial: Any) -> ShardedParameter:
        """A bias of which each rank has the elements of its own outputs, or all."""
        blocks = [Block({0: [own]}) for own in shard_ranges(outputs, self.comm.size)]
        if self._requested == "weight-replicated":
            blocks = [Block({})] * self.comm.size
        initial = 0 if initial is None else initial
        return ShardedParameter(self.comm, initial, blocks, (outputs,))

    @reads_own_shards
    def _run(
        self, x: Any, compute: Callable[..., Variable], redistribute_inputs: Any = None
    ) -> Variable:
        """Applies ``compute(x, W, b)`` to blocks, with redistributions around it.

        Args:
            redistribute_inputs: in the place of the sharding's own method.
        """
        if BATCH in (self._source, self._target):
            return self._run_by_sample(x, compute, redistribute_inputs)
        placements = self._source, self._target
        return self._run_by_channel(x, compute, redistribute_inputs, *placements)

    def _run_by_sample(
        self, x: Any, compute: Callable[..., Variable], redistribute_inputs: Any
    ) -> Variable:
        """The same where x or y is sharded by samples."""
        sharding, comm = self._sharding, self.comm
        assert sharding is not None
        source, target = self._source, self._target
        if sharding.grid.gathers_weight and source == target:
            return compute(x, *sharding.local_weights(self.W, self.b, self._out_axis))
        batch = batch_ranges(self, x) if source == BATCH else None
        batch = shard_ranges(len(x), comm.size) if batch is None else batch
        samples = sizes_of(batch)
        if sharding.grid.gathers_weight:
            weights = sharding.local_weights(self.W, self.b, self._out_axis)
            before = sharding.redistribute_inputs(source, sum(samples))
            y = compute(x if before is None else before.apply(x), *weights)
            after = sharding.redistribute_outputs(target, sum(samples))
            return y if after is None else after.apply(y)
        if source == BATCH:
            sizes, source = sizes_of(sharding.input_ranges), CHANNEL
            x = Redistribution(comm, BATCH, CHANNEL, samples, sizes).apply(x)
        if target != BATCH:
            return self._run_by_channel(x, compute, redistribute_inputs, source, target)
        y = self._run_by_channel(x, compute, redistribute_inputs, source, CHANNEL)
        sizes = sizes_of(sharding.output_ranges)
        return Redistribution(comm, CHANNEL, BATCH, sizes, samples).apply(y)

    def _run_by_channel(
        self,
        x: Any,
        compute: Callable[..., Variable],
        redistribute_inputs: Any,
        source: Placement,
        target: Placement,
    ) -> Variable:
        sharding = self._sharding
        assert sharding is not None
        W, b = sharding.local_weights(self.W, self.b, self._out_axis)
        chunks = self.pieces
        if chunks is None:
            assert self.cost is not None
            chunks = number_of_chunks(self.comm, self.cost)
        if sharding.grid.gathers_weight and chunks > 1:  # each has samples of all ranks
            chunks = max(1, min(chunks, len(x) // self.comm.size))
        before = redistribute_inputs or sharding.redistribute_inputs
        y = run(
            lambda block, *weights: compute(
                sharding.take_input_block(block, source), *weights
            ),
            x,
            W,
            b,
            functools.partial(before, source),
            functools.partial(sharding.redistribute_outputs, target),
            chunks,
        )
        gather = sharding.gather_summed_outputs(target)
        return y if gather is None else gather.apply(y)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the whole parameters; every rank has to take part."""
        if not self.W.is_initialized and isinstance(serializer, Deserializer):
            data = serializer("W", None)
            if data is not None:
                for param in self.params():
                    if not param.is_initialized:
                        serializer.on_failure(
                            functools.partial(param.restore_values, None)
                        )
                self._initialize_by(data.shape)
        super().serialize(serializer)

    def _initialize_by(self, shape: tuple[int, ...]) -> None:
        """Initializes W from the shape of the whole weight, which a file has."""
        raise NotImplementedError

    @property
    def _parallel_specs(self) -> Iterator[tuple[str, Any]]:
        yield "input_layout", self.input_layout
        yield "output_layout", self.output_layout
        yield "algorithm", self.algorithm
        yield "rank", f"{self.comm.rank} of {self.comm.size}"
