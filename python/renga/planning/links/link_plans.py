"""Plans of models, which parallel links execute."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from renga.links.parallel.channel.replacement import LinkChoice
from renga.planning.links.space import LinkSpace
from renga.planning.links.spatial import SpatialStep
from renga.planning.links.step_chain import StepChain
from renga.planning.links.traced_model import TracedModel
from renga.planning.markov_chain import Found
from renga.planning.plan import Bar, Plan, Row
from renga.planning.report import data_start, next_best
from renga.planning.space import take

_TIMED = 3


def link_plans(
    space: LinkSpace, found: Sequence[Found], spatial: Sequence[SpatialStep]
) -> dict[str, Plan]:
    """The best plans, the shortest predicted step first, and data parallelism.

    Args:
        found: by a search of the space, the shortest step first.
        spatial: steps that fit into the memory.
    """
    data = data_start(found)
    plans: dict[str, Plan] = {}
    for candidate in _distinct(found, data):
        take(space, candidate.choices)
        is_data = candidate.seconds == data.seconds
        name = "data" if is_data else f"layouts {len(plans) + 1}"
        rows, bars = _rows(space, candidate), _bars(space.traced, space.step)
        plans[name] = _plan(
            space, candidate.seconds, data, rows, bars, space.link_choices(), None
        )
    for step in spatial:
        rows, bars = _spatial_rows(space.traced, step), _bars(space.traced, step.step)
        name = f"spatial {step.grid[0]}x{step.grid[1]}"
        plans[name] = _plan(space, step.step.seconds(), data, rows, bars, {}, step.grid)
    ordered = sorted(plans, key=lambda name: plans[name].seconds)
    kept = [name for i, name in enumerate(ordered) if i < _TIMED or name == "data"]
    return {name: plans[name] for name in kept}


def _distinct(found: Sequence[Found], data: Found) -> list[Found]:
    """The best ones with different times, and data parallelism."""
    chosen: list[Found] = []
    for candidate in found:
        if len(chosen) < _TIMED and all(c.seconds != candidate.seconds for c in chosen):
            chosen.append(candidate)
    if all(c.seconds != data.seconds for c in chosen):
        chosen.append(data)
    return chosen


def _plan(
    space: LinkSpace,
    seconds: float,
    data: Found,
    rows: list[Row],
    bars: list[Bar],
    links: dict[str, LinkChoice],
    grid: tuple[int, int] | None,
) -> Plan:
    name, cluster = (
        space.traced.graph.name,
        dataclasses.replace(space.cluster, comm=None),
    )
    return Plan(name, cluster, seconds, data.seconds, rows, links, bars, grid=grid)


def _bars(traced: TracedModel, step: StepChain) -> list[Bar]:
    bars = []
    for task in step.tasks:
        path = traced.calls[task.operation // 3].path
        part, kind = task.operation % 3, task.kind
        if part == 0:
            kind = "send" if kind == "forward" else "send gradient"
        layer = f"behind {path}" if part == 2 else path
        bars.append(Bar(kind, layer, task.resource, task.start, task.end))
    return bars


def _rows(space: LinkSpace, found: Found) -> list[Row]:
    rows = []
    for i, traced in enumerate(space.traced.calls):
        times, layouts = space.times(traced), space.layouts(traced.call)
        waited = times.messages.forward + times.messages.backward
        choice = f"{space.algorithm(traced)}, {layouts[0]} -> {layouts[1]}"
        best = next_best(space, found, space.variables_of(i))
        computed = times.total - waited
        rows.append(
            Row(traced.path, choice, computed, times.messages.bytes, waited, best)
        )
    return rows


def _spatial_rows(traced: TracedModel, step: SpatialStep) -> list[Row]:
    rows = []
    for call, times in zip(traced.calls, step.times):
        waited = times.messages.forward + times.messages.backward
        is_image = len(call.call.y_shape) > 2
        choice = f"rows {step.grid[0]}, columns {step.grid[1]}"
        choice = choice if is_image else "replicated"
        computed = times.total - waited
        rows.append(Row(call.path, choice, computed, times.messages.bytes, waited, ""))
    return rows
