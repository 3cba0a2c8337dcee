"""How a model's activations lie on the ranks: what costs least."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from renga.link import Link
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution_2d import Convolution2D
from renga.links.convolution.deconvolution_2d import Deconvolution2D
from renga.links.parallel.channel.cost import (
    Cost,
    cheapest,
    image_layer,
    linear_layer,
    rates_of,
)
from renga.links.parallel.channel.grid import grids, grouped_grids
from renga.links.parallel.channel.trace import SHARED, Call, Trace
from renga.links.parallel.relayout import LAYOUTS

Layouts = Callable[[Link], tuple[str, str]]
_Choice = dict[Any, str]  # by what stands for a class of vertices


def choose_layouts(seen: Trace, comm: Any) -> Layouts:
    """How the inputs and outputs of each link lie.

    From all that may be in parts lying by channel, and from all by sample, one class
    of variables after another is changed where that makes a step cheaper; the cheaper
    end is taken. Layers of large images and few weights end by sample, of small images
    and many weights by channel.

    Source: Krizhevsky, One weird trick for parallelizing convolutional neural
    networks, 2014.
    """
    found = [_descend(seen, comm, start) for start in SHARED]
    chosen = min(found, key=lambda choice: _total(seen, comm, choice))

    def layouts(link: Link) -> tuple[str, str]:
        for call in seen.calls:
            if call.link is link:
                return _layouts(seen, call, chosen)
        return "replicated", "replicated"

    return layouts


def _descend(seen: Trace, comm: Any, start: str) -> _Choice:
    possible = _possible(seen, comm.size)
    choice = {root: start if start in p else p[0] for root, p in possible.items()}
    changed = True
    while changed:
        changed = False
        for root, layouts in possible.items():
            costs = {
                layout: _total(seen, comm, {**choice, root: layout}, root)
                for layout in layouts
            }
            best = min(layouts, key=costs.__getitem__)
            if costs[best] < costs[choice[root]]:
                choice[root], changed = best, True
    return choice


def _possible(seen: Trace, ranks: int) -> dict[Any, list[str]]:
    """The layouts of each class that need not be whole; no rank is without samples."""
    classes, possible = seen.classes, dict[Any, list[str]]()
    for call in seen.calls:
        few = call.x_shape[0] < ranks
        for vertex in (call.x, call.y):
            root = classes.find(vertex)
            layouts = possible.get(root, classes.choices(vertex))
            possible[root] = [a for a in layouts if a != "batch" or not few]
    return {root: layouts for root, layouts in possible.items() if layouts}


def _total(seen: Trace, comm: Any, choice: _Choice, root: Any = None) -> float:
    """Seconds of a step, of the calls that ``root`` has to do with or of all."""
    find = seen.classes.find
    calls = seen.calls
    if root is not None:
        calls = [c for c in calls if root in (find(c.x), find(c.y))]
    return sum(
        cost_of_call(call.link, comm, _layouts(seen, call, choice), call).total
        for call in calls
    )


def _layouts(seen: Trace, call: Call, choice: _Choice) -> tuple[str, str]:
    x, y = (choice.get(seen.classes.find(v), "replicated") for v in (call.x, call.y))
    return x, y


def cost_of_call(link: Any, comm: Any, layouts: tuple[str, str], call: Call) -> Cost:
    """What a step of a link costs, forward and back, for inputs as it was given."""
    every, ways = grids(comm.size), [LAYOUTS[layout] for layout in layouts]
    if isinstance(link, Linear):
        outputs, inputs = link.W.shape
        layer = linear_layer(inputs, outputs, call.x_shape[0])
        return cheapest(layer, every, comm, *ways)[1]
    if isinstance(link, (Convolution2D, Deconvolution2D)):
        x, y = (
            (shape[1], shape[0] * math.prod(shape[2:]))
            for shape in (call.x_shape, call.y_shape)
        )
        window = link.W.shape[2:], link.stride, link.dilate
        layer = image_layer(x, y, *window, link.groups)
        every = every if link.groups == 1 else grouped_grids(every)
        return cheapest(layer, every, comm, *ways)[1]
    return _cost_of_change(link, comm, layouts, call)


def _cost_of_change(link: Any, comm: Any, layouts: tuple[str, str], call: Call) -> Cost:
    """What a link costs that computes each channel alone."""
    rates, others = rates_of(comm), comm.size - 1
    moved, messages = 0.0, 0
    if layouts == ("batch", "batch"):  # of statistics and sums, in float64
        messages, moved = 3, 8.0 * 7 * call.x_shape[1] * others
    elif layouts != ("replicated", "replicated"):
        for layout, shape in zip(layouts, (call.x_shape, call.y_shape)):
            part = 4 * math.prod(shape) * others / comm.size
            if layout != "channel":
                messages += 2 if layout == "batch" else 1
                moved += 2 * part / comm.size if layout == "batch" else part
    return Cost(messages * others * rates.alpha + moved * rates.beta, 0, moved)
