"""What a parallel link sends in a step, and how long that takes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from renga.communicators import Communicator, simulated
from renga.communicators.simulated.simulated_communicator import SimulatedCommunicator
from renga.core.link import Link
from renga.core.link.own_values import own_params
from renga.links.connection.embed_id import EmbedID
from renga.links.connection.linear import Linear
from renga.links.convolution.deconvolution import Deconvolution2D
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.channel.process_grid import (
    WeightSharding,
    requested_grids,
    shard_weight,
)
from renga.parallel.conversion.tracing import CalledLink
from renga.parallel.placement import (
    BATCH,
    CHANNEL,
    LAYOUTS,
    PARTIAL,
    REPLICATE,
    REPLICATE_SUMMED,
    Placement,
    Shard,
)
from renga.parallel.placement.shard_ranges import shard_ranges, sizes_of
from renga.parallel.plan.cluster import Cluster
from renga.parallel.redistribute import Redistribution, sent_bytes
from renga.parallel.redistribute.cost import machine_of

_CHANNELS = {"features": "channel"}
_Change = tuple[Redistribution, Sequence[int]]  # and the shape of the variable


class Messages(NamedTuple):
    """Of each rank in a step."""

    forward: float  # seconds
    backward: float
    bytes: int  # sent
    calls: int  # of collectives

    def __add__(self, other: Any) -> Messages:
        return Messages(*(a + b for a, b in zip(self, other)))

    def __sub__(self, other: Any) -> Messages:
        return Messages(*(a - b for a, b in zip(self, other)))


NONE = Messages(0.0, 0.0, 0, 0)


@functools.cache
def simulated_ranks(cluster: Cluster, rank: int = 0) -> SimulatedCommunicator:
    """A rank of a cluster; each is made once, as its groups are known by it."""
    return simulated.connect(cluster.ranks, rank, **vars(cluster.machine))


def link_messages(
    link: Link,
    call: CalledLink,
    layouts: tuple[str, str],
    algorithm: str,
    cluster: Cluster,
    rank: int = 0,
) -> Messages:
    """Of a link that is replaced by a channel-parallel one.

    Args:
        call: of the serial link.
        layouts: of its input and output.
        algorithm: the name of a grid; of no meaning for links without products.
        rank: whose messages; only on a 2-D grid may they differ, where channels do not
            divide evenly.
    """
    if cluster.ranks == 1:
        return NONE
    # The features of a sequence are the channels of each position.
    source, target = (LAYOUTS[_CHANNELS.get(a, a)] for a in layouts)
    has_gradient = call.x is not None and call.x.is_inner
    comm = simulated_ranks(cluster, rank)
    if isinstance(link, EmbedID):
        return _of_embedding(link, call, target, cluster)
    if isinstance(link, BatchNormalization):
        if source == target == BATCH:
            return of_statistics(call.x_shape[1], cluster)
        before, after = _around_channels(comm, call, source, target)
        weights: list[_Change] = []
    else:
        sharding, shapes = _sharding(link, call, algorithm, comm)
        before, after = _around_products(sharding, source, target, *shapes)
        weights = _weight_changes(link, sharding)
    total = NONE
    if source == BATCH and not (weights and target == BATCH):
        total += of_one_number(cluster)  # of samples
    for change, shape in before:
        total += _of_change(change, shape, cluster, has_gradient)
    for change, shape in [*weights, *after]:
        total += _of_change(change, shape, cluster, True)
    return total


def parameter_sizes(
    link: Link, call: CalledLink, algorithm: str, cluster: Cluster
) -> list[int]:
    """The elements of each parameter of a replaced link on rank 0."""
    ranks = cluster.ranks
    sizes = {name: param.size for name, param in own_params(link).items()}
    if isinstance(link, (EmbedID, BatchNormalization)):
        weight = link.W if isinstance(link, EmbedID) else link.avg_mean
        channels = weight.shape[-1]
        own = len(shard_ranges(channels, ranks)[0])
        return [size // channels * own for size in sizes.values()]
    sharding, _ = _sharding(link, call, algorithm, simulated_ranks(cluster))
    if sharding.grid.replicates_weight:
        return list(sizes.values())
    if "b" in sizes:
        sizes["b"] = len(sharding.output_ranges[0])
    blocks = [(sharding.output_block(0), sharding.output_ranges)]
    if getattr(link, "groups", 1) > 1:  # cut by outputs only
        blocks = [(list(sharding.output_ranges[:1]), sharding.output_ranges)]
    elif not sharding.grid.gathers_weight:
        blocks.append((sharding.input_block(0), sharding.input_ranges))
    for own_ranges, ranges in blocks:
        sizes["W"] = sizes["W"] * sum(sizes_of(own_ranges)) // sum(sizes_of(ranges))
    return list(sizes.values())


def _sharding(
    link: Any, call: CalledLink, algorithm: str, comm: Communicator
) -> tuple[WeightSharding, tuple[tuple[int, ...], tuple[int, ...]]]:
    """The sharding of the weight, and the shapes of x and y as it sees them."""
    outputs, inputs = link.W.shape[:2]
    unit, x_shape, y_shape = 1, call.x_shape, call.y_shape
    if isinstance(link, Deconvolution2D):
        inputs, outputs = link.W.shape[0], link.W.shape[1] * link.groups
    elif isinstance(link, Linear):
        unit = call.pixels
        rows = math.prod(call.x_shape) // inputs
        x_shape, y_shape = (rows, inputs), (rows, outputs)
    else:
        inputs *= link.groups
    (grid,) = requested_grids(algorithm, comm.size)
    return shard_weight(comm, inputs, outputs, grid, unit), (x_shape, y_shape)


def _around_products(
    sharding: WeightSharding,
    source: Placement,
    target: Placement,
    x: tuple[int, ...],
    y: tuple[int, ...],
) -> tuple[list[_Change], list[_Change]]:
    """The redistributions of x and of y around a layer with a weight."""
    comm, samples = sharding.comm, x[0]
    batch = sizes_of(shard_ranges(samples, comm.size))
    before: list[tuple[Any, Sequence[int]]] = []
    last: list[tuple[Any, Sequence[int]]] = []
    if not sharding.grid.gathers_weight:
        if source == BATCH:
            sizes = sizes_of(sharding.input_ranges)
            before.append((Redistribution(comm, BATCH, CHANNEL, batch, sizes), x))
            source = CHANNEL
        if target == BATCH:
            sizes = sizes_of(sharding.output_ranges)
            last.append((Redistribution(comm, CHANNEL, BATCH, sizes, batch), y))
            target = CHANNEL
    before.append((sharding.redistribute_inputs(source, samples), x))
    after = [
        (sharding.redistribute_outputs(target, samples), y),
        (sharding.gather_summed_outputs(target), y),
        *last,
    ]
    return [c for c in before if c[0]], [c for c in after if c[0]]


def _weight_changes(link: Any, sharding: WeightSharding) -> list[_Change]:
    if not sharding.grid.gathers_weight:
        return []
    found: list[_Change] = []
    for param, axis in ((link.W, int(isinstance(link, Deconvolution2D))), (link.b, 0)):
        if param is not None:
            change = Redistribution(sharding.comm, REPLICATE, REPLICATE_SUMMED)
            if not sharding.grid.replicates_weight:
                sizes = sizes_of(sharding.output_ranges)
                change = change._replace(source=Shard(axis), source_sizes=sizes)
            found.append((change, param.shape))
    return found


def _around_channels(
    comm: Communicator, call: CalledLink, source: Placement, target: Placement
) -> tuple[list[_Change], list[_Change]]:
    """Those around a link that computes each channel by itself."""
    sizes = sizes_of(shard_ranges(call.x_shape[1], comm.size))
    batch = sizes_of(shard_ranges(call.x_shape[0], comm.size))
    before: list[_Change] = []
    after: list[_Change] = []
    if source != CHANNEL:
        shards = batch if source == BATCH else []
        change = Redistribution(comm, source, CHANNEL, shards, sizes)
        before.append((change, call.x_shape))
    if target != CHANNEL:
        shards = batch if target == BATCH else []
        change = Redistribution(comm, CHANNEL, target, sizes, shards)
        after.append((change, call.y_shape))
    return before, after


def _of_change(
    change: Redistribution,
    shape: Sequence[int],
    cluster: Cluster,
    is_differentiated: bool,
) -> Messages:
    """Of a redistribution and, if anything before it needs a gradient, its adjoint."""
    total = _of_pass(change, shape, cluster, True)
    if is_differentiated:
        total += _of_pass(change.adjoint(), shape, cluster, False)
    return total


def _of_pass(
    change: Redistribution, shape: Sequence[int], cluster: Cluster, is_forward: bool
) -> Messages:
    ranks, size = change.comm.size, sent_bytes(change, shape)
    machine = machine_of(change.comm)
    if size == 0:
        return NONE
    if change.source == PARTIAL and not isinstance(change.target, Shard):
        seconds = cluster.group_all_reduce(machine, ranks, 4 * math.prod(shape))
    else:
        seconds = cluster.all_to_all(machine, ranks, size // (ranks - 1))
    passes = (seconds, 0.0) if is_forward else (0.0, seconds)
    return Messages(*passes, size, 1)


def of_statistics(channels: int, cluster: Cluster, rows: int = 5) -> Messages:
    """Of batch normalization over the samples of all ranks, in float64.

    Args:
        rows: that are sent forward; three if parameters are replicated. Backward there
            are two.
    """
    seconds = [
        cluster.all_to_all(cluster.machine, cluster.ranks, n * 8 * channels)
        for n in (rows, 2)
    ]
    size = (rows + 2) * 8 * channels * (cluster.ranks - 1)
    return Messages(seconds[0], seconds[1], size, 2)


def of_one_number(cluster: Cluster) -> Messages:
    """Of 8 bytes from each rank to all others.

    They are a number of samples, or a digest by which ranks compare their calls.
    """
    seconds = cluster.all_to_all(cluster.machine, cluster.ranks, 8)
    return Messages(seconds, 0.0, 8 * (cluster.ranks - 1), 1)


def _of_embedding(
    link: Any, call: CalledLink, target: Placement, cluster: Cluster
) -> Messages:
    if target != REPLICATE:
        return NONE
    axis = len(call.y_shape) - 1
    sizes = sizes_of(shard_ranges(link.W.shape[1], cluster.ranks))
    gather = Redistribution(simulated_ranks(cluster), Shard(axis), REPLICATE, sizes)
    return _of_change(gather, call.y_shape, cluster, True)
