"""The layouts of a model's activations that cost least."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any

from renga.communicators import Communicator
from renga.core.link import Link
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution import Convolution2D
from renga.links.convolution.deconvolution import Deconvolution2D
from renga.links.parallel.channel.cost_model import (
    cheapest_grid,
    convolution_size,
    linear_size,
)
from renga.links.parallel.channel.process_grid import grids_for_groups, process_grids
from renga.parallel.conversion.tracing import SHARDED_LAYOUTS, CalledLink, Trace
from renga.parallel.placement import LAYOUTS
from renga.parallel.redistribute.cost import StepCost, rates_of

LayoutsOf = Callable[[Link], tuple[str, str]]  # of a link's input and output
_Choice = dict[Any, str]  # layouts by the representatives of groups of nodes


def choose_layouts(traced: Trace, comm: Communicator) -> LayoutsOf:
    """Chooses the layouts of the inputs and outputs of each link.

    Coordinate descent from two starting points: all activations that may be sharded
    by channel, and all by sample. The layout of one group of variables after another
    is changed where that makes a step cheaper; the cheaper result is taken. Layers of
    large images and few weights end up by sample, those of small images and many
    weights by channel.

    Source: Krizhevsky, One weird trick for parallelizing convolutional neural
    networks, 2014.
    """
    candidates = [_descend(traced, comm, start) for start in SHARDED_LAYOUTS]
    chosen = min(candidates, key=lambda choice: _total(traced, comm, choice))

    def layouts_of(link: Link) -> tuple[str, str]:
        for call in traced.calls:
            if call.link is link:
                return _layouts(traced, call, chosen)
        return "replicated", "replicated"

    return layouts_of


def _descend(traced: Trace, comm: Communicator, start: str) -> _Choice:
    possible = possible_layouts(traced, comm.size)
    choice = {root: start if start in p else p[0] for root, p in possible.items()}
    has_changed = True
    while has_changed:
        has_changed = False
        for root, layouts in possible.items():
            costs = {
                layout: _total(traced, comm, {**choice, root: layout}, root)
                for layout in layouts
            }
            best = min(layouts, key=costs.__getitem__)
            if costs[best] < costs[choice[root]]:
                choice[root], has_changed = best, True
    return choice


def possible_layouts(traced: Trace, ranks: int) -> dict[Hashable, list[str]]:
    """The layouts of each group that may be sharded; every rank needs a sample."""
    groups, possible = traced.groups, dict[Any, list[str]]()
    for call in traced.calls:
        has_too_few_samples = call.x_shape[0] < ranks
        for node in (call.x, call.y):
            root = groups.find(node)
            layouts = possible.get(root, groups.choices(node))
            possible[root] = [
                a for a in layouts if a != "batch" or not has_too_few_samples
            ]
    return {root: layouts for root, layouts in possible.items() if layouts}


def _total(
    traced: Trace, comm: Communicator, choice: _Choice, root: Any = None
) -> float:
    """Seconds of a step: of the calls that use group ``root``, or of all."""
    find = traced.groups.find
    calls = traced.calls
    if root is not None:
        calls = [c for c in calls if root in (find(c.x), find(c.y))]
    return sum(
        cost_of_call(call.link, comm, _layouts(traced, call, choice), call).total
        for call in calls
    )


def _layouts(traced: Trace, call: CalledLink, choice: _Choice) -> tuple[str, str]:
    find = traced.groups.find
    x, y = (choice.get(find(node), "replicated") for node in (call.x, call.y))
    return x, y


def cost_of_call(
    link: Link, comm: Communicator, layouts: tuple[str, str], call: CalledLink
) -> StepCost:
    """What a step of a link costs, forward and backward, for the inputs of a call."""
    grids, placements = process_grids(comm.size), [LAYOUTS[a] for a in layouts]
    if isinstance(link, Linear):
        outputs, inputs = link.W.shape
        rows = math.prod(call.x_shape[: call.batch_axes])
        layer = linear_size(inputs, outputs, rows)
        return cheapest_grid(layer, grids, comm, *placements)[1]
    if isinstance(link, (Convolution2D, Deconvolution2D)):
        x, y = (
            (shape[1], shape[0] * math.prod(shape[2:]))
            for shape in (call.x_shape, call.y_shape)
        )
        window = link.W.shape[2:], link.stride, link.dilate
        layer = convolution_size(x, y, *window, link.groups)
        grids = grids if link.groups == 1 else grids_for_groups(grids)
        return cheapest_grid(layer, grids, comm, *placements)[1]
    return _cost_of_channelwise_link(comm, layouts, call)


def _cost_of_channelwise_link(
    comm: Communicator, layouts: tuple[str, str], call: CalledLink
) -> StepCost:
    """What redistributions cost around a link that computes each channel by itself."""
    moved, messages, others = 0.0, 0, comm.size - 1
    if layouts == ("batch", "batch"):  # statistics and their gradients, in float64
        messages, moved = 2, 8.0 * 7 * call.x_shape[1] * others
    elif layouts != ("replicated", "replicated"):
        for layout, shape in zip(layouts, (call.x_shape, call.y_shape)):
            received = 4 * math.prod(shape) * others / comm.size
            if layout == "batch":  # all-to-all, forward and backward
                messages, moved = messages + 2, moved + 2 * received / comm.size
            elif layout != "channel":
                messages, moved = messages + 1, moved + received
    return rates_of(comm).cost(messages * others, moved)
