"""Strategies in which every rank has a stage of a pipeline."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from renga import _core
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.parallel.pipeline import measurement
from renga.parallel.pipeline.partition import Stage, partition
from renga.parallel.pipeline.schedule import bubble
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.configuration import Configuration
from renga.parallel.plan.costs import Costs
from renga.parallel.plan.graph import whole
from renga.parallel.plan.simulation import Task
from renga.parallel.plan.strategies.traced_model import TracedModel

_MOST_MICRO_BATCHES = 4  # for each rank


class StageStep(NamedTuple):
    """A step of a pipeline, as it is predicted."""

    stages: tuple[Stage, ...]  # of a micro-batch
    micro_batches: int
    seconds: float
    memory: int  # bytes of the rank that needs most
    tasks: list[Task]  # operations are stages, one micro-batch after the other

    @property
    def starts(self) -> tuple[str, ...]:
        """The links that the second and later stages start with."""
        return tuple(stage.links[0] for stage in self.stages[1:])


def stage_steps(traced: TracedModel, cluster: Cluster, costs: Costs) -> list[StageStep]:
    """The steps with several numbers of micro-batches.

    There are none for batch normalization, whose statistics would be those of
    micro-batches, nor for fewer links than ranks.
    """
    ranks, samples = cluster.ranks, len(traced.inputs[0])
    paths = {call.path for call in traced.calls}
    links = traced.model.links()
    is_normalized = any(isinstance(link, BatchNormalization) for link in links)
    if ranks == 1 or is_normalized or len(paths) < ranks:
        return []
    numbers = range(ranks, min(samples, _MOST_MICRO_BATCHES * ranks) + 1)
    return [_step(traced, cluster, costs, n) for n in numbers if samples % n == 0]


def _step(
    traced: TracedModel, cluster: Cluster, costs: Costs, micro_batches: int
) -> StageStep:
    ranks, machine = cluster.ranks, cluster.link_machine
    seconds_per_byte = 1 / min(machine.bandwidth, machine.node_bandwidth)
    if ranks <= machine.intra_size:
        seconds_per_byte = 1 / machine.node_bandwidth
    measured = measurement.SegmentCosts(*_segments(traced, costs, micro_batches))
    expected = bubble("1f1b", ranks, micro_batches)
    stages = partition(measured, ranks, seconds_per_byte, expected).stages
    simulator = _simulated(stages, micro_batches, cluster, costs)
    seconds = float(simulator.seconds())
    tasks = [Task(*task) for task in simulator.tasks()]
    memory = _memory(traced, stages, micro_batches)
    return StageStep(stages, micro_batches, seconds, memory, tasks)


def _segments(
    traced: TracedModel, costs: Costs, micro_batches: int
) -> tuple[list[measurement.Segment], list[tuple[int, int, int]]]:
    """What each link and the functions behind it take for a micro-batch, and send."""
    segments: dict[str, measurement.Segment] = {}
    values = []
    for call in traced.calls:
        sent = 4 * math.prod(call.call.x_shape) // micro_batches
        if segments and call.path not in segments:
            values.append((len(segments) - 1, len(segments), sent))
        own = segments.setdefault(call.path, measurement.Segment(call.path))
        for index in (call.link, call.functions):
            op = traced.graph.operations[index]
            degrees = (min(micro_batches, op.extents[0]),)
            split = Configuration(degrees + (1,) * (len(op.extents) - 1), ())
            forward, backward = costs.task(op, split)
            own.forward, own.backward = own.forward + forward, own.backward + backward
            own.parameter_bytes += 4 * op.parameters
    return list(segments.values()), values


def _simulated(
    stages: Sequence[Stage], micro_batches: int, cluster: Cluster, costs: Costs
) -> Any:
    """Every stage of every micro-batch is an operation on the stage's rank."""
    simulator = _core.planning.Simulator(
        dataclasses.replace(cluster, machine=cluster.link_machine).topology
    )
    ranks = len(stages)
    for index in range(micro_batches * ranks):
        rank = index % ranks
        sent = max(1, stages[rank + 1].received // 4) if rank + 1 < ranks else 1
        inputs = []
        if rank > 0:
            size = max(1, stages[rank].received // 4)
            inputs = [_core.planning.Input(index - 1, [size], [whole()])]
        # The first micro-batch is the last one whose gradients complete a sum.
        update = costs.update_bytes(stages[rank].parameters) if index < ranks else 0.0
        node = _core.planning.Operation([sent], 1, 4, [False], inputs)
        passes = stages[rank].forward, stages[rank].backward
        own = _core.planning.Configuration([1], 1, 1, [rank], *passes, 0.0, update)
        simulator.add_operation(node, own)
    return simulator


def _memory(traced: TracedModel, stages: Sequence[Stage], micro_batches: int) -> int:
    """A stage keeps the activations of as many micro-batches as stages follow."""
    outputs: dict[str, float] = {}
    for call in traced.calls:
        size = 2 * 4 * traced.graph.operations[call.link].size / micro_batches
        outputs[call.path] = outputs.get(call.path, 0.0) + size
    held = []
    for i, stage in enumerate(stages):
        kept = min(len(stages) - i, micro_batches)
        activations = kept * sum(outputs[link] for link in stage.links)
        held.append(3 * stage.parameters + activations)
    return math.ceil(max(held))
