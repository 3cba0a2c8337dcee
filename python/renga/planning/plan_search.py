"""The search for a plan, and its report."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

from renga.link import Link
from renga.planning.cluster import Cluster
from renga.planning.costs import Costs
from renga.planning.graph import Graph
from renga.planning.links.space import LinkSpace
from renga.planning.links.timing import time_plans
from renga.planning.links.traced_model import TracedModel
from renga.planning.markov_chain import Found, search_space
from renga.planning.plan import Bar, Plan, Row
from renga.planning.simulation import sync_bytes
from renga.planning.space import OperationSpace, Space, take

# What is tried for the column "next best" where there are more choices.
_COMPARED = 12
_TIMED = 3


def search(
    model: Link | Graph,
    x: Any,
    cluster: Cluster,
    costs: Costs,
    seconds: float = 10.0,
    seed: int = 0,
    proposals: int | None = None,
) -> Plan:
    """The plan with the shortest step that was found.

    For a model only strategies that links can execute are searched, and the best three
    and data parallelism are timed if the cluster is that of a communicator; the fastest
    is the plan. Every rank calls it; rank 0 searches, and all get the same plan. For a
    described network (:class:`Graph`) operations may be split along any axes, and be
    on any ranks.

    Args:
        x: an example of the model's input, or a tuple of several; None for a graph.
        costs: from :func:`measure`, or ``Costs(device)`` for a described device.
        seconds: of the search on one core, without the timing.
        seed: equal ones find equal plans if ``proposals`` is given.
        proposals: the number of changes to try, in the place of ``seconds``.

    Raises:
        ValueError: no plan fits into the device's memory.
    """
    if isinstance(model, Graph):
        space = OperationSpace(model, cluster, costs)
        found = search_space(space, seconds, seed, proposals, costs.device.memory)
        return _operation_plan(space, found)
    inputs = x if isinstance(x, tuple) else (x,)
    comm, plans = cluster.comm, None
    traced = TracedModel(model, inputs)
    if comm is None or comm.rank == 0:
        links = LinkSpace(traced, cluster, costs)
        found = search_space(links, seconds, seed, proposals, costs.device.memory)
        plans = _link_plans(links, found)
    if comm is not None:
        plans = comm.bcast_obj(plans)
    assert plans is not None  # rank 0 has found some
    best = next(iter(plans.values()))
    if comm is None or comm.size == 1 or len(plans) == 1:
        return best
    measured = time_plans(model, comm, plans, inputs)
    fastest = plans[min(measured, key=measured.__getitem__)]
    fastest.measured = measured
    return fastest


def _distinct(found: Sequence[Found]) -> list[Found]:
    """The best ones with different times, and data parallelism."""
    chosen: list[Found] = []
    for candidate in found:
        if len(chosen) < _TIMED and all(c.seconds != candidate.seconds for c in chosen):
            chosen.append(candidate)
    data = _data(found)
    if all(c.seconds != data.seconds for c in chosen):
        chosen.append(data)
    return chosen


def _data(found: Sequence[Found]) -> Found:
    return next((f for f in found if f.start == "data" and not f.proposals), found[-1])


def _link_plans(space: LinkSpace, found: Sequence[Found]) -> dict[str, Plan]:
    data, plans = _data(found), dict[str, Plan]()
    for candidate in _distinct(found):
        take(space, candidate.choices)
        rows = _link_rows(space, candidate)
        bars = _link_bars(space)
        name = "data" if candidate.seconds == data.seconds else f"plan {len(plans) + 1}"
        plans[name] = Plan(
            space.traced.graph.name,
            dataclasses.replace(space.cluster, comm=None),
            candidate.seconds,
            data.seconds,
            rows,
            space.link_choices(),
            bars,
        )
    return plans


def _link_bars(space: LinkSpace) -> list[Bar]:
    bars = []
    for task in space.tasks:
        path = space.traced.calls[task.operation // 3].path
        part, kind = task.operation % 3, task.kind
        if part == 0:
            kind = "send" if kind == "forward" else "send gradient"
        layer = f"behind {path}" if part == 2 else path
        bars.append(Bar(kind, layer, task.resource, task.start, task.end))
    return bars


def _link_rows(space: LinkSpace, found: Found) -> list[Row]:
    rows = []
    for i, traced in enumerate(space.traced.calls):
        times, layouts = space.times(traced), space.layouts(traced.call)
        waited = times.messages.forward + times.messages.backward
        choice = f"{space.algorithm(traced)}, {layouts[0]} -> {layouts[1]}"
        computed = times.total - waited
        options = space.variables_of(i)
        best = _next_best(space, found, options)
        rows.append(
            Row(traced.path, choice, computed, times.messages.bytes, waited, best)
        )
    return rows


def _operation_plan(space: OperationSpace, found: Sequence[Found]) -> Plan:
    best = found[0]
    take(space, best.choices)
    simulation, graph = space.simulation, space.graph
    rows, ranks = [], space.cluster.ranks
    waits = [0.0] * len(graph.operations)
    for task in simulation.tasks:
        if task.kind in ("send", "send gradient", "sync"):
            waits[task.operation] += (task.end - task.start) / ranks
    bars = [
        Bar(t.kind, graph.operations[t.operation].name, t.resource, t.start, t.end)
        for t in simulation.tasks
    ]
    for variable, group in enumerate(space.groups):
        op, choice = graph.operations[group[0]], best.choices[variable]
        computed = sum(
            sum(simulation.costs.task(graph.operations[i], choice)) for i in group
        )
        computed += simulation.costs.update(op, choice)
        sent = sum(sync_bytes(graph.operations[i], choice) for i in group) / ranks
        waited = sum(waits[i] for i in group)
        name = op.shared or op.name
        if op.kind != "input":
            other = _next_best(space, best, [variable])
            rows.append(Row(name, choice.text(op), computed, sent, waited, other))
    return Plan(
        graph.name, space.cluster, best.seconds, _data(found).seconds, rows, None, bars
    )


def _next_best(space: Space, found: Found, variables: Sequence[int]) -> str:
    """The best of the other choices of some variables, one changed at a time."""
    best: tuple[float, str] | None = None
    generator = random.Random(0)
    for variable in variables:
        own, options = found.choices[variable], list(space.choices(variable))
        others = [option for option in options if option != own]
        if len(others) > _COMPARED:
            others = generator.sample(others, _COMPARED)
        for other in others:
            space.change(variable, other)
            seconds = space.seconds()
            if best is None or seconds < best[0]:
                best = seconds, space.describe(variable, other)
        space.change(variable, own)
    if best is None:
        return ""
    return f"{best[1]} ({best[0] / found.seconds - 1:+.1%})"
