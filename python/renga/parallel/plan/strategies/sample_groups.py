"""Strategies in which each group of ranks has samples of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from renga.core.around_call import variables_in
from renga.core.configuration import no_backprop_mode, using_config
from renga.core.link.traces import without_traces
from renga.parallel.groups import create_groups
from renga.parallel.placement.shard_ranges import as_slice, shard_range
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.configuration import Configuration
from renga.parallel.plan.costs import Costs, Pass
from renga.parallel.plan.graph import Operation
from renga.parallel.plan.strategies.messages import (
    NONE,
    Messages,
    of_one_number,
    of_statistics,
    simulated_ranks,
)
from renga.parallel.plan.strategies.traced_model import TracedModel
from renga.parallel.redistribute.cost import machine_of
from renga.parallel.samples.stacked_steps import stacked_steps
from renga.parallel.samples.summed_gradients import LARGE


@dataclasses.dataclass(frozen=True)
class SampleGroups:
    """What groups of ranks with samples of their own send each other.

    Args:
        count: of the groups.
        data: the ranks with the same part of the model.
        inner: the ranks of a group, which share the model.
        whole: all ranks.
        traced: the model, with the samples of a group.
        costs: of the operations of a group.
        stacked: whether outputs are so, as a ``SampleRun`` takes it.
        outputs: bytes of each output of a group.
        others: elements of parameters of links that no link replaces.
    """

    count: int
    data: Cluster
    inner: Cluster
    whole: Cluster
    traced: TracedModel
    costs: Costs
    stacked: tuple[bool, ...]
    outputs: list[int]
    others: list[int]

    def statistics(self, channels: int) -> Messages:
        """Of a batch normalization."""
        return of_statistics(channels, self.data, 3)

    def gathers(self) -> Messages:
        """Of the check of the arguments, and of the outputs."""
        ranks = self.data.ranks - 1
        total = of_one_number(self.whole)
        for size in self.outputs:
            seconds = self.data.all_to_all(self.data.machine, self.data.ranks, size)
            total += Messages(seconds, 0.0, ranks * size, 1)
        return total

    def sums(self, sizes: Sequence[int]) -> Messages:
        """Of the gradients of parameters with so many elements."""
        size_of = [4 * n for n in (*sizes, *self.others)]
        sent = [n for n in size_of if n >= LARGE]
        small = sum(n for n in size_of if n < LARGE)
        data, total = self.data, NONE
        for size in [*sent, small] if small else sent:
            seconds = data.group_all_reduce(data.machine, data.ranks, size)
            own = 2 * (data.ranks - 1) * size // data.ranks
            total += Messages(0.0, seconds, own, 1)
        return total


def sample_groups(
    traced: TracedModel, cluster: Cluster, costs: Costs
) -> list[SampleGroups]:
    """The numbers of groups into which the ranks can be split.

    There are none if a sample of the model's outputs depends on other samples.
    """
    model, inputs = traced.model, traced.inputs
    ranks, samples = cluster.ranks, len(inputs[0])
    counts = [n for n in range(2, ranks + 1) if ranks % n == 0 and n <= samples]
    if not counts:
        return []
    try:
        stacked = stacked_steps(model, inputs, counts[-1])
    except ValueError:
        return []
    found = []
    for count in counts:
        part = as_slice(shard_range(samples, count, 0))
        own = [x[part] if len(x) == samples else x for x in inputs]
        try:
            data, inner = _clusters(cluster, count)
        except ValueError:  # nodes are not filled by groups
            continue
        part_of = TracedModel(model, own)
        found.append(
            SampleGroups(
                count,
                data,
                inner,
                cluster,
                part_of,
                _GroupCosts(costs, traced, part_of, count),
                stacked,
                _outputs(part_of),
                _others(part_of),
            )
        )
    return found


def _clusters(cluster: Cluster, count: int) -> tuple[Cluster, Cluster]:
    """Of the ranks with the same part of the model, and of those of a group."""
    inner = cluster.ranks // count
    groups = create_groups(simulated_ranks(cluster), data=count, channel=inner)
    found = []
    for comm in (groups.data, groups.channel):
        times = cluster.collectives
        if times is not None:
            times = times.scaled((comm.size - 1) / (cluster.ranks - 1))
        machine = machine_of(comm) if times is None else cluster.machine
        found.append(Cluster(comm.size, machine, False, None, times))
    return found[0], found[1]


def _outputs(traced: TracedModel) -> list[int]:
    model, train = traced.model, using_config("train", False)
    with no_backprop_mode(), train, without_traces(model):
        return [y.array.nbytes for y in variables_in(model(*traced.inputs))]


def _others(traced: TracedModel) -> list[int]:
    known = {id(p) for call in traced.calls for p in call.call.link.params()}
    return [p.size for p in traced.model.params() if id(p) not in known]


class _GroupCosts(Costs):
    """Of operations with the samples of a group: those of a part of all samples."""

    def __init__(
        self, costs: Costs, whole: TracedModel, part: TracedModel, count: int
    ) -> None:
        super().__init__(costs.device)
        self._costs, self._count = costs, count
        pairs = zip(part.graph.operations, whole.graph.operations)
        self._whole = {own.signature: op for own, op in pairs}

    def task(self, op: Operation, configuration: Configuration) -> Pass:
        whole = self._whole[op.signature]
        samples, *degrees = configuration.degrees
        samples = min(samples * self._count, whole.extents[0])
        split = Configuration((samples, *degrees), (), configuration.reduction)
        return self._costs.task(whole, split)
