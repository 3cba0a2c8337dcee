"""The search for a plan, and its report."""

from __future__ import annotations

import random
from collections.abc import Sequence

from renga.core.link import Link
from renga.core.types import Array
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.costs import Costs
from renga.parallel.plan.drawing import Bar
from renga.parallel.plan.graph import Graph
from renga.parallel.plan.markov_chain import (
    Found,
    data_start,
    descend,
    next_best,
    search_space,
    starts,
)
from renga.parallel.plan.plan import Plan, PlanRow
from renga.parallel.plan.simulation import sync_bytes
from renga.parallel.plan.space import OperationSpace, take
from renga.parallel.plan.strategies.link_plans import link_plans
from renga.parallel.plan.strategies.sample_groups import sample_groups
from renga.parallel.plan.strategies.space import LinkSpace
from renga.parallel.plan.strategies.spatial import spatial_steps
from renga.parallel.plan.strategies.stages import stage_steps
from renga.parallel.plan.strategies.timing import time_plans
from renga.parallel.plan.strategies.traced_model import TracedModel

_SWEEPS = 3  # over the choices of a described network, each of which takes long


def search(
    model: Link | Graph,
    x: Array,
    cluster: Cluster,
    costs: Costs,
    seconds: float = 10.0,
    seed: int = 0,
    proposals: int | None = None,
    pipeline: bool = False,
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
        pipeline: whether a plan may have stages. It is trained by a
            ``PipelineUpdater``; all others by any loop.

    Raises:
        ValueError: no plan fits into the device's memory.
    """
    if isinstance(model, Graph):
        space = OperationSpace(model, cluster, costs)
        memory = costs.device.memory
        found = search_space(space, seconds, seed, proposals, memory)
        found.insert(0, descend(space, found[0], memory, _SWEEPS))
        return _operation_plan(space, found)
    inputs = x if isinstance(x, tuple) else (x,)
    comm, plans = cluster.comm, None
    traced = TracedModel(model, inputs)
    if comm is None or comm.rank == 0:
        budget = seconds, seed, proposals
        plans = _best_plans(traced, cluster, costs, budget, pipeline)
    if comm is not None:
        plans = comm.bcast_obj(plans)
    assert plans is not None  # rank 0 has found some
    best = next(iter(plans.values()))
    if comm is None or comm.size == 1 or len(plans) == 1:
        return best
    measured = time_plans(model, comm, plans, inputs)
    fastest = plans[min(plans, key=measured.__getitem__)]
    fastest.measured = measured
    return fastest


def _best_plans(
    traced: TracedModel,
    cluster: Cluster,
    costs: Costs,
    budget: tuple[float, int, int | None],
    pipeline: bool,
) -> dict[str, Plan]:
    """The plans with the shortest predicted steps, the first one first."""
    links, memory = LinkSpace(traced, cluster, costs), costs.device.memory
    found = search_space(links, *budget, memory)
    found.insert(0, descend(links, found[0], memory))
    spatial = spatial_steps(traced, cluster, costs)
    stages = stage_steps(traced, cluster, costs) if pipeline else []
    return link_plans(
        links,
        found,
        _grouped(traced, cluster, costs),
        [step for step in spatial if step.memory <= memory],
        [step for step in stages if step.memory <= memory],
    )


def _grouped(
    traced: TracedModel, cluster: Cluster, costs: Costs
) -> list[tuple[LinkSpace, Found]]:
    """The best strategy of each number of groups of ranks that fits into the memory.

    The starts of a search, but for data parallelism and the random one, are improved.
    """
    found, memory = [], costs.device.memory
    for groups in sample_groups(traced, cluster, costs):
        space = LinkSpace.of_groups(groups)
        starts = space.starts(random.Random(0))
        candidates = [
            descend(space, Found(starts[name], 0.0, name, 0), memory)
            for name in ("serial", "channel", "cost model")
        ]
        best = min(candidates, key=lambda candidate: candidate.seconds)
        take(space, best.choices)
        if space.memory() <= memory:
            found.append((space, best))
    return found


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
            other = next_best(space, best, [variable])
            rows.append(PlanRow(name, choice.text(op), computed, sent, waited, other))
    seconds = best.seconds, data_start(found).seconds
    return Plan(
        graph.name,
        space.cluster,
        *seconds,
        rows,
        timeline=bars,
        predicted=starts(found),
    )
