"""What a channel-parallel layer costs on a grid of ranks, and which grid to take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from renga.communicators import Communicator
from renga.links.parallel.channel.process_grid import ProcessGrid
from renga.parallel.placement import BATCH, CHANNEL, REPLICATE, Placement
from renga.parallel.redistribute.cost import Rates, StepCost, rates_of


class LayerSize(NamedTuple):
    """The sizes of a layer that its cost depends on."""

    x: int  # bytes of the whole input
    y: int  # bytes of the whole output
    W: int  # bytes of the whole weight
    flops: float  # floating-point operations of a forward pass
    # Further operations of Winograd's transforms:
    image_flops: float = 0.0  # for each byte of x and y
    filter_flops: float = 0.0  # for each byte of W


def convolution_size(
    x: tuple[int, int],
    y: tuple[int, int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilate: Sequence[int],
    groups: int,
) -> LayerSize:
    """Of a convolution or a transposed one.

    For windows that the core computes by Winograd's algorithm, fewer products are
    counted, and the transforms.

    Args:
        x, y: (channels, pixels of the batch).
    """
    weights = x[0] * y[0] // groups * math.prod(kernel)
    flops = 2.0 * weights * min(x[1], y[1])
    is_plain = groups == 1 and set(dilate) == {1}
    window = tuple(kernel), tuple(stride)
    products, image_flops, filter_flops = 1.0, 1.0, 1.0
    if is_plain and window == ((3, 3), (1, 1)):
        products, image_flops = 2.25 / 9, 2.25 * 26 * 2 / 4
        filter_flops = 36 / 9 * 12 * 2 / 4
    if is_plain and window == ((4, 4), (2, 2)):
        products, image_flops = 6.25 / 16, 6.25 / 4 * 26 * 2 / 4
        filter_flops = 100 / 16 * 12 * 2 / 4
    sizes = 4 * x[0] * x[1], 4 * y[0] * y[1], 4 * weights
    return LayerSize(*sizes, flops * products, image_flops, filter_flops)


def linear_size(in_size: int, out_size: int, batch: int) -> LayerSize:
    """Of the product of a batch and a matrix."""
    weights = in_size * out_size
    x, y = 4 * batch * in_size, 4 * batch * out_size
    return LayerSize(x, y, 4 * weights, 2.0 * batch * weights)


def cost_of(
    layer: LayerSize,
    grid: ProcessGrid,
    rates: Rates,
    source: Placement,
    target: Placement,
) -> StepCost:
    """What a step of a layer costs each rank on a grid.

    Every rank sends to every other: an all-gather, or a reduce-scatter, which is its
    adjoint, of n bytes over p ranks takes (p − 1) (α + n β / p); an all-reduce twice
    that.
    """
    size = grid.input_blocks * grid.output_blocks
    messages = _messages(layer, grid, source, target)
    moved = sum(times * n * (ranks - 1) / ranks for n, ranks, times in messages)
    count = sum(times * (ranks - 1) for _, ranks, times in messages)
    communication = count * rates.alpha + moved * rates.beta
    if grid.gathers_weight:
        images, filters = (layer.x + layer.y) / size, float(layer.W)
    else:
        images = layer.x / grid.input_blocks + layer.y / grid.output_blocks
        filters = layer.W / size
    operations = layer.flops / size + layer.image_flops * images
    operations += layer.filter_flops * filters
    return StepCost(communication, 3 * operations * rates.flop, moved)


def _messages(
    layer: LayerSize, grid: ProcessGrid, source: Placement, target: Placement
) -> list[tuple[float, int, int]]:
    """(bytes of the whole array, ranks, number) of all-gathers and reduce-scatters.

    The gradient of a replicated output needs no message.
    """
    size = grid.input_blocks * grid.output_blocks
    is_x_replicated, is_y_replicated = source == REPLICATE, target == REPLICATE
    # In an all-to-all a rank receives no more than its shard of the whole.
    x_exchanged, y_exchanged = (layer.x / size, size, 2), (layer.y / size, size, 2)
    if grid.gathers_weight:
        messages = [(float(layer.W), size, 2)]
        if source != BATCH:
            whole = float(layer.x), size, 1
            messages.append(whole if is_x_replicated else x_exchanged)
        if target != BATCH:
            whole = float(layer.y), size, 1
            messages.append(whole if is_y_replicated else y_exchanged)
        return messages
    if BATCH in (source, target):
        before = [x_exchanged] if source == BATCH else []
        after = [y_exchanged] if target == BATCH else []
        source, target = (CHANNEL if a == BATCH else a for a in (source, target))
        between = _messages(layer, grid, source, target)
        return [*before, *between, *after]
    if is_x_replicated:  # only its gradient is sent
        messages = [(float(layer.x), size, 1 if grid.output_blocks == 1 else 2)]
    else:
        messages = [(layer.x / grid.input_blocks, grid.output_blocks, 2)]
    if is_y_replicated and grid.output_blocks == 1:
        return [*messages, (float(layer.y), size, 2)]
    messages.append((layer.y / grid.output_blocks, grid.input_blocks, 2))
    return [*messages, (float(layer.y), size, 1 if is_y_replicated else 0)]


def cheapest_grid(
    layer: LayerSize,
    grids: Sequence[ProcessGrid],
    comm: Communicator,
    source: Placement,
    target: Placement,
) -> tuple[ProcessGrid, StepCost]:
    """The cheapest of the grids, the first of equal ones, and its cost."""
    rates = rates_of(comm)
    costs = [cost_of(layer, grid, rates, source, target) for grid in grids]
    totals = [cost.total for cost in costs]
    least = totals.index(min(totals))
    return grids[least], costs[least]
