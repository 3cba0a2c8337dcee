"""What a channel-parallel layer costs on a grid of ranks, and which grid to take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from renga.links.parallel.channel.grid import Grid
from renga.links.parallel.relayout import BATCH, CHANNEL, REPLICATED, Layout


class Rates(NamedTuple):
    """What a network and a rank take for a message, a byte and an operation."""

    alpha: float = 2e-5  # seconds for a message
    beta: float = 2.5e-10  # seconds for a byte
    flop: float = 1e-11  # seconds for a floating-point operation


class Layer(NamedTuple):
    """A layer by its sizes, for one step forward and back."""

    x: int  # bytes of the whole input
    y: int  # bytes of the whole output
    W: int  # bytes of the whole weight
    flops: float  # forward
    image_flops: float = 0.0  # more, for each byte of x and y: Winograd's transforms
    filter_flops: float = 0.0  # more, for each byte of W


def image_layer(
    x: tuple[int, int],
    y: tuple[int, int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilate: Sequence[int],
    groups: int,
) -> Layer:
    """A convolution, or a transposed one, of (channels, pixels of the batch)."""
    pairs = x[0] * y[0] // groups * math.prod(kernel)
    products = 2.0 * pairs * min(x[1], y[1])
    plain = groups == 1 and set(dilate) == {1}
    window = tuple(kernel), tuple(stride)
    # What is left of the products; what transforms cost per byte of x, y and W.
    saved, moved, filters = 1.0, 1.0, 1.0
    if plain and window == ((3, 3), (1, 1)):
        saved, moved, filters = 2.25 / 9, 2.25 * 26 * 2 / 4, 36 / 9 * 12 * 2 / 4
    if plain and window == ((4, 4), (2, 2)):
        saved, moved = 6.25 / 16, 6.25 / 4 * 26 * 2 / 4
        filters = 100 / 16 * 12 * 2 / 4
    sizes = 4 * x[0] * x[1], 4 * y[0] * y[1], 4 * pairs
    return Layer(*sizes, products * saved, moved, filters)


def linear_layer(in_size: int, out_size: int, batch: int) -> Layer:
    """A product of a batch and a matrix."""
    pairs = in_size * out_size
    return Layer(
        4 * batch * in_size, 4 * batch * out_size, 4 * pairs, 2.0 * batch * pairs
    )


class Cost(NamedTuple):
    """Seconds of one step forward and back."""

    communication: float
    computation: float
    bytes: float

    @property
    def total(self) -> float:
        """Both, one after the other."""
        return self.communication + self.computation


def rates_of(comm: Any) -> Rates:
    """The rates of a simulated communicator's machine, and usual ones of others."""
    machine = getattr(comm, "machine", None)
    if machine is None:
        return Rates()
    if comm.intra_size == comm.size:
        return Rates(machine.node_latency, 1 / machine.node_bandwidth)
    return Rates(machine.latency, 1 / machine.bandwidth)


def cost_of(
    layer: Layer, grid: Grid, rates: Rates, source: Layout, target: Layout
) -> Cost:
    """What a step of a layer costs each rank on a grid.

    Every rank sends to every other: gathers and their adjoint, reduce-scatters, of n
    bytes over p ranks take (p − 1) (α + n β / p); all-reduces twice that.
    """
    size = grid.inputs * grid.outputs
    messages = _messages(layer, grid, source, target)
    moved = sum(times * n * (ranks - 1) / ranks for n, ranks, times in messages)
    count = sum(times * (ranks - 1) for _, ranks, times in messages)
    communication = count * rates.alpha + moved * rates.beta
    if grid.gathers_weight:
        images, filters = (layer.x + layer.y) / size, float(layer.W)
    else:
        images = layer.x / grid.inputs + layer.y / grid.outputs
        filters = layer.W / size
    operations = layer.flops / size + layer.image_flops * images
    operations += layer.filter_flops * filters
    return Cost(communication, 3 * operations * rates.flop, moved)


def _messages(
    layer: Layer, grid: Grid, source: Layout, target: Layout
) -> list[tuple[float, int, int]]:
    """Bytes of a whole that is gathered or scattered, over how many ranks, how often.

    The gradient of a replicated output needs no message.
    """
    size = grid.inputs * grid.outputs
    x_whole, y_whole = source == REPLICATED, target == REPLICATED
    # What a rank gets in an exchange is but its share of the whole.
    x_exchanged, y_exchanged = (layer.x / size, size, 2), (layer.y / size, size, 2)
    if grid.gathers_weight:
        messages = [(float(layer.W), size, 2)]
        if source != BATCH:
            messages.append((float(layer.x), size, 1) if x_whole else x_exchanged)
        if target != BATCH:
            messages.append((float(layer.y), size, 1) if y_whole else y_exchanged)
        return messages
    if BATCH in (source, target):
        x_between = [x_exchanged] if source == BATCH else []
        y_between = [y_exchanged] if target == BATCH else []
        source, target = (CHANNEL if a == BATCH else a for a in (source, target))
        between = _messages(layer, grid, source, target)
        return [*x_between, *between, *y_between]
    if x_whole:  # only its gradient travels
        messages = [(float(layer.x), size, 1 if grid.outputs == 1 else 2)]
    else:
        messages = [(layer.x / grid.inputs, grid.outputs, 2)]
    if y_whole and grid.outputs == 1:
        return [*messages, (float(layer.y), size, 2)]
    messages.append((layer.y / grid.outputs, grid.inputs, 2))
    return [*messages, (float(layer.y), size, 1 if y_whole else 0)]


def cheapest(
    layer: Layer, grids: Sequence[Grid], comm: Any, source: Layout, target: Layout
) -> tuple[Grid, Cost]:
    """The cheapest of the grids, the first of equal ones, and its cost."""
    rates = rates_of(comm)
    costs = [cost_of(layer, grid, rates, source, target) for grid in grids]
    totals = [cost.total for cost in costs]
    least = totals.index(min(totals))
    return grids[least], costs[least]
