"""Plans of models, which parallel links execute."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from renga.planning.links.space import LinkSpace
from renga.planning.links.spatial import SpatialStep
from renga.planning.links.stages import StageStep
from renga.planning.links.step_chain import StepChain
from renga.planning.links.traced_model import TracedModel
from renga.planning.markov_chain import Found
from renga.planning.plan import Bar, Plan, Row, Stages
from renga.planning.report import data_start, next_best
from renga.planning.space import take

_TIMED = 3


def link_plans(
    space: LinkSpace,
    found: Sequence[Found],
    spatial: Sequence[SpatialStep],
    pipelines: Sequence[StageStep],
) -> dict[str, Plan]:
    """The best plans, the shortest predicted step first, and data parallelism.

    Args:
        found: by a search of the space, the shortest step first.
        spatial, pipelines: steps that fit into the memory.
    """
    data, traced = data_start(found), space.traced
    plans: dict[str, Plan] = {}
    cluster = dataclasses.replace(space.cluster, comm=None)

    def add(
        name: str, seconds: float, rows: list[Row], bars: list[Bar], **choices: Any
    ) -> None:
        figures = seconds, data.seconds, rows
        choices = {"links": {}, **choices}
        plans[name] = Plan(
            traced.graph.name, cluster, *figures, timeline=bars, **choices
        )

    for candidate in _distinct(found, data):
        take(space, candidate.choices)
        is_data = candidate.seconds == data.seconds
        name = "data" if is_data else f"layouts {len(plans) + 1}"
        links, bars = space.link_choices(), _bars(traced, space.step)
        add(name, candidate.seconds, _rows(space, candidate), bars, links=links)
    for step in spatial:
        name, seconds = f"spatial {step.grid[0]}x{step.grid[1]}", step.step.seconds()
        rows, bars = _spatial_rows(traced, step), _bars(traced, step.step)
        add(name, seconds, rows, bars, grid=step.grid)
    for pipeline in pipelines:
        stages = Stages(pipeline.starts, pipeline.micro_batches)
        rows, bars = _stage_rows(pipeline), _stage_bars(pipeline)
        name = f"pipeline of {pipeline.micro_batches} micro-batches"
        add(name, pipeline.seconds, rows, bars, stages=stages)
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


def _stage_rows(step: StageStep) -> list[Row]:
    rows, number = [], step.micro_batches
    for rank, stage in enumerate(step.stages):
        links = stage.links[0]
        links += f" to {stage.links[-1]}" if len(stage.links) > 1 else ""
        computed = number * stage.seconds
        after = step.stages[rank + 1].received if rank + 1 < len(step.stages) else 0
        sent = number * (stage.received + after)  # gradients back, outputs on
        choice, waited = f"stage on rank {rank}", step.seconds - computed
        rows.append(Row(links, choice, computed, sent, waited, ""))
    return rows


def _stage_bars(step: StageStep) -> list[Bar]:
    ranks = len(step.stages)
    return [
        Bar(
            task.kind,
            f"micro-batch {task.operation // ranks}",
            task.resource,
            task.start,
            task.end,
        )
        for task in step.tasks
    ]
