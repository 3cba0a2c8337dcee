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
    flops: float  # forward
    moved: float = 0.0  # operations spent on each byte of x and y read or written


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
    """The rates of a communicator, where it tells them."""
    return Rates(
        *(getattr(comm, name, getattr(Rates(), name)) for name in Rates._fields)
    )


def cost_of(
    layer: Layer, grid: Grid, rates: Rates, source: Layout, target: Layout
) -> Cost:
    """What a step of a layer costs each rank on a grid.

    Gathers and their adjoint, reduce-scatters, of n bytes over p ranks take
    α + (p − 1) / p n β; all-reduces twice that.
    """
    size = grid.inputs * grid.outputs
    x_block, y_block = layer.x / grid.inputs, layer.y / grid.outputs
    # (bytes of the whole, ranks, times)
    messages: list[tuple[float, int, int]] = []
    if source != REPLICATED:
        messages.append((x_block, grid.outputs, 2))
    else:  # only its gradient travels
        messages.append((layer.x, size, 1 if grid.outputs == 1 else 2))
    if target == REPLICATED and grid.outputs == 1:
        messages.append((layer.y, size, 2))
    else:
        messages.append((y_block, grid.inputs, 2))
        messages.append((layer.y, size, 1 if target == REPLICATED else 0))
    moved = [
        whole * (ranks - 1) / ranks
        for whole, ranks, times in messages
        for _ in range(times)
        if ranks > 1
    ]
    communication = sum(rates.alpha + n * rates.beta for n in moved)
    operations = 3 * (layer.flops / size + layer.moved * (x_block + y_block))
    return Cost(communication, operations * rates.flop, sum(moved))


def choose_grid(
    layer: Layer, grids: Sequence[Grid], comm: Any, source: Layout, target: Layout
) -> Grid:
    """The cheapest of the grids; the first of equal ones."""
    rates = rates_of(comm)
    costs = [cost_of(layer, grid, rates, source, target).total for grid in grids]
    return grids[costs.index(min(costs))]
