"""Plans of models, which parallel links execute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.configuration import Configuration, data_parallel
from renga.parallel.plan.costs import Costs
from renga.parallel.plan.drawing import Bar
from renga.parallel.plan.markov_chain import Found, data_start, next_best, starts
from renga.parallel.plan.plan import Plan, PlanRow, Stages
from renga.parallel.plan.space import take
from renga.parallel.plan.strategies.messages import NONE
from renga.parallel.plan.strategies.space import LinkSpace
from renga.parallel.plan.strategies.spatial import SpatialStep
from renga.parallel.plan.strategies.stages import StageStep
from renga.parallel.plan.strategies.step_chain import LinkTimes, StepChain
from renga.parallel.plan.strategies.traced_model import TracedModel

_TIMED = 3
_LAYOUTS = "layouts"  # and a number, in the names of plans
# A plan has a name, the seconds of a step, rows, a timeline, and what it chooses.
_Candidate = tuple[str, float, list[PlanRow], list[Bar], dict[str, Any]]


def link_plans(
    space: LinkSpace,
    found: Sequence[Found],
    grouped: Sequence[tuple[LinkSpace, Found]],
    spatial: Sequence[SpatialStep],
    pipelines: Sequence[StageStep],
) -> dict[str, Plan]:
    """The best plans, the shortest predicted step first, and data parallelism.

    Args:
        found: by a search of the space, the shortest step first.
        grouped: the best strategies of groups of ranks with samples of their own.
        spatial, pipelines: steps that fit into the memory.
    """
    data, traced = data_start(found), space.traced
    cluster = space.cluster.without_ranks
    without_plan = data_seconds(traced, space.cluster, space.costs)
    plans: dict[str, Plan] = {}
    others = set()
    for name, seconds, rows, bars, choices in (
        *_of_layouts(space, found, data),
        *_of_groups(grouped, cluster.ranks),
        *_of_images(traced, spatial, cluster.ranks),
        *_of_stages(pipelines),
    ):
        figures = seconds, without_plan, rows
        choices = {"links": {}, **choices}
        model = traced.graph.name
        plans[name] = Plan(model, cluster, *figures, timeline=bars, **choices)
        if not name.startswith(_LAYOUTS) and name != "data":
            others.add(name)
    predicted = starts(found) | {name: plans[name].seconds for name in others}
    for plan in plans.values():
        plan.predicted = predicted
    ordered = sorted(plans, key=lambda name: plans[name].seconds)
    kept = [name for i, name in enumerate(ordered) if i < _TIMED or name == "data"]
    return {name: plans[name] for name in kept}


def _of_layouts(
    space: LinkSpace, found: Sequence[Found], data: Found
) -> Iterator[_Candidate]:
    for i, candidate in enumerate(_distinct(found, data)):
        take(space, candidate.choices)
        is_data = candidate.seconds == data.seconds
        name = "data" if is_data else f"{_LAYOUTS} {i + 1}"
        rows, bars = _rows(space, candidate), _bars(space.step, space.cluster.ranks)
        yield name, candidate.seconds, rows, bars, dict(links=space.link_choices())


def _of_groups(
    grouped: Sequence[tuple[LinkSpace, Found]], ranks: int
) -> Iterator[_Candidate]:
    for space, candidate in grouped:
        take(space, candidate.choices)
        groups = space.groups
        assert groups is not None
        name = f"{groups.count} groups of samples"
        choices = dict(
            links=space.link_choices(), groups=groups.count, stacked=groups.stacked
        )
        rows, bars = _rows(space, candidate), _bars(space.step, ranks)
        yield name, candidate.seconds, rows, bars, choices


def _of_images(
    traced: TracedModel, spatial: Sequence[SpatialStep], ranks: int
) -> Iterator[_Candidate]:
    for step in spatial:
        name = f"spatial {step.grid[0]}x{step.grid[1]}"
        rows, bars = _spatial_rows(traced, step), _bars(step.step, ranks)
        yield name, step.step.seconds(), rows, bars, dict(grid=step.grid)


def _of_stages(pipelines: Sequence[StageStep]) -> Iterator[_Candidate]:
    for pipeline in pipelines:
        stages = Stages(pipeline.starts, pipeline.micro_batches)
        rows, bars = _stage_rows(pipeline), _stage_bars(pipeline)
        name = f"pipeline of {pipeline.micro_batches} micro-batches"
        yield name, pipeline.seconds, rows, bars, dict(stages=stages)


def _distinct(found: Sequence[Found], data: Found) -> list[Found]:
    """The best ones with different times, and data parallelism."""
    chosen: list[Found] = []
    for candidate in found:
        if len(chosen) < _TIMED and all(c.seconds != candidate.seconds for c in chosen):
            chosen.append(candidate)
    if all(c.seconds != data.seconds for c in chosen):
        chosen.append(data)
    return chosen


def _bars(step: StepChain, ranks: int) -> list[Bar]:
    bars = []
    for task in step.tasks:
        path = step.names[task.operation // 3]
        part, kind = task.operation % 3, task.kind
        if part == 0:
            kind = "send" if kind == "forward" else "send gradient"
        layer = f"behind {path}" if part == 2 else path
        bars += [Bar(kind, layer, rank, *task[3:]) for rank in range(ranks)]
    return bars


def data_seconds(traced: TracedModel, cluster: Cluster, costs: Costs) -> float:
    """The predicted step of a multi-node optimizer, without any parallel link.

    Each rank computes its samples, and adds up the gradients of all parameters, during
    the backward pass if the cluster overlaps these.
    """
    times, parameters, hidden = [], 0, 0.0
    for call in traced.calls:
        op, behind = (traced.graph.operations[i] for i in (call.link, call.functions))
        passes = [costs.task(o, data_parallel(o, cluster.ranks)) for o in (op, behind)]
        hidden += passes[0][1] + passes[1][1]
        parameters += op.parameters
        whole = Configuration((1,) * len(op.extents), ())
        times.append(LinkTimes(passes[0], passes[1], NONE, costs.update(op, whole)))
    exposed = cluster.all_reduce(range(cluster.ranks), 4 * parameters)
    if cluster.overlaps:
        exposed = max(0.0, exposed - hidden)
    times[0] = times[0]._replace(messages=NONE._replace(backward=exposed))
    names = [call.path for call in traced.calls]
    return StepChain(cluster, times, names).seconds()


def _rows(space: LinkSpace, found: Found) -> list[PlanRow]:
    """One for all calls of a link that are alike."""
    rows: dict[tuple[str, str], PlanRow] = {}
    for i, traced in enumerate(space.traced.calls):
        times, layouts = space.times(traced), space.layouts(traced.call)
        waited = times.messages.forward + times.messages.backward
        key = traced.path, f"{space.algorithm(traced)}, {layouts[0]} -> {layouts[1]}"
        figures = times.computed, times.messages.bytes, waited
        if key in rows:
            before = rows[key]
            rows[key] = before._replace(
                computed=before.computed + figures[0],
                sent=before.sent + figures[1],
                waited=before.waited + figures[2],
            )
        else:
            best = next_best(space, found, space.variables_of(i))
            rows[key] = PlanRow(*key, *figures, best)
    return [*rows.values(), *_sample_rows(space)]


def _sample_rows(space: LinkSpace) -> list[PlanRow]:
    """What groups of ranks with samples of their own send, or else all ranks."""
    if space.groups is None:
        if space.cluster.ranks == 1:
            return []
        checks = space.step.times[-1].messages
        return [PlanRow("arguments", "compared", 0.0, checks.bytes, checks.forward, "")]
    sums, gathers = space.step.times[0].messages, space.step.times[-1].messages
    text = f"{space.groups.count} groups"
    return [
        PlanRow("gradients", text, 0.0, sums.bytes, sums.backward, ""),
        PlanRow("outputs", text, 0.0, gathers.bytes, gathers.forward, ""),
    ]


def _spatial_rows(traced: TracedModel, step: SpatialStep) -> list[PlanRow]:
    rows = []
    for call, times in zip(traced.calls, step.times):
        waited = times.messages.forward + times.messages.backward
        is_image = len(call.call.y_shape) > 2
        choice = f"rows {step.grid[0]}, columns {step.grid[1]}"
        choice = choice if is_image else "replicated"
        sent = times.messages.bytes
        rows.append(PlanRow(call.path, choice, times.computed, sent, waited, ""))
    return rows


def _stage_rows(step: StageStep) -> list[PlanRow]:
    rows, number = [], step.micro_batches
    for rank, stage in enumerate(step.stages):
        links = stage.links[0]
        links += f" to {stage.links[-1]}" if len(stage.links) > 1 else ""
        computed = number * stage.seconds
        after = step.stages[rank + 1].received if rank + 1 < len(step.stages) else 0
        sent = number * (stage.received + after)  # gradients back, outputs on
        choice, waited = f"stage on rank {rank}", step.seconds - computed
        rows.append(PlanRow(links, choice, computed, sent, waited, ""))
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
