"""What a channel-parallel layer costs on a grid of ranks, and which grid to take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from renga.links.parallel.channel.grid import Grid
from renga.links.parallel.relayout import REPLICATED, Layout


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
    if grid.gathers_weight:
        # What a rank gets in an exchange is but its share of the whole.
        x = (float(layer.x), size, 1) if x_whole else (layer.x / size, size, 2)
        y = (float(layer.y), size, 1) if y_whole else (layer.y / size, size, 2)
        return [(float(layer.W), size, 2), x, y]
    if x_whole:  # only its gradient travels
        messages = [(float(layer.x), size, 1 if grid.outputs == 1 else 2)]
    else:
        messages = [(layer.x / grid.inputs, grid.outputs, 2)]
    if y_whole and grid.outputs == 1:
        return [*messages, (float(layer.y), size, 2)]
    messages.append((layer.y / grid.outputs, grid.inputs, 2))
    return [*messages, (float(layer.y), size, 1 if y_whole else 0)]


def choose_grid(
    layer: Layer, grids: Sequence[Grid], comm: Any, source: Layout, target: Layout
) -> Grid:
    """The cheapest of the grids; the first of equal ones."""
    rates = rates_of(comm)
    costs = [cost_of(layer, grid, rates, source, target).total for grid in grids]
    return grids[costs.index(min(costs))]
