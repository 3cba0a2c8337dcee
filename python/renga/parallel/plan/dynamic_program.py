"""Search by dynamic programming, for comparison with random changes."""

from __future__ import annotations

from renga import _core
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.configuration import Configuration
from renga.parallel.plan.graph import Operation
from renga.parallel.plan.markov_chain import Found
from renga.parallel.plan.space import OperationSpace, take

_Table = dict[Configuration, tuple[float, "Configuration | None"]]


def dynamic_program(space: OperationSpace) -> Found:
    """The best strategy under the assumption that nothing runs at the same time.

    A step then takes the tasks of each operation and the messages from its first input,
    one after the other, and the best choice for each configuration of an operation
    follows from those of the operation that it reads. The strategy found is simulated.
    Exact for chains of operations on which no tasks overlap.

    Source: Jia et al., Exploring hidden dimensions in parallelizing convolutional
    neural networks, 2018 (OptCNN).
    """
    operations, costs = space.graph.operations, space.simulation.costs
    cluster = space.cluster
    tables: dict[int, _Table] = {}
    for variable, group in enumerate(space.groups):
        op = operations[group[0]]
        before = tables.get(op.inputs[0].producer, {}) if op.inputs else {}
        table: _Table = {}
        for choice in space.choices(variable):
            own = sum(costs.task(op, choice)) + space.simulation.sync_seconds(
                op, choice
            )
            own += costs.update(op, choice)
            table[choice] = own, None
            if before:
                producer = operations[op.inputs[0].producer]
                totals = {
                    source: seconds
                    + message_seconds(producer, source, op, choice, 0, cluster)
                    for source, (seconds, _) in before.items()
                }
                best = min(totals, key=totals.__getitem__)
                table[choice] = own + totals[best], best
        tables[group[0]] = table
    chosen: dict[int, Configuration] = {}
    for i in sorted(tables, reverse=True):
        table = tables[i]
        chosen.setdefault(i, min(table, key=lambda c: table[c][0]))
        previous = table[chosen[i]][1]
        if previous is not None:
            chosen.setdefault(operations[i].inputs[0].producer, previous)
    choices = [chosen[group[0]] for group in space.groups]
    return Found(choices, take(space, choices), "dynamic program", 0)


def message_seconds(
    producer: Operation,
    source: Configuration,
    reader: Operation,
    target: Configuration,
    index: int,
    cluster: Cluster,
) -> float:
    """The seconds of the messages of an input and its gradient, on the busiest port."""
    return float(
        _core.planning.message_seconds(
            cluster.topology,
            producer.node,
            _without_times(source),
            reader.node,
            _without_times(target),
            index,
        )
    )


def _without_times(c: Configuration) -> _core.planning.Configuration:
    return _core.planning.Configuration(
        c.degrees, c.reduction, c.replicas, c.ranks, 0, 0, 0, 0
    )
