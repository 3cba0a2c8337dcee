"""Strategies in which every rank has a box of each image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy

from renga.communicators import Communicator, simulated
from renga.core.configuration import using_config
from renga.core.gradients import backward
from renga.functions.noise.seed import unchanged_generator
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.parallel.parallelize import with_strategy
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.configuration import Configuration
from renga.parallel.plan.costs import Costs, share_of
from renga.parallel.plan.strategies.measurement import outputs_of
from renga.parallel.plan.strategies.messages import NONE, Messages
from renga.parallel.plan.strategies.step_chain import LinkTimes, StepChain
from renga.parallel.plan.strategies.traced_model import TracedModel
from renga.program import Recorder
from renga.utils.type_check import InvalidType

_IMAGE_AXES = 4
_MOST_RANKS = 16
_MOST_BYTES = 1 << 32  # of simulated parameters and gradients


class SpatialStep(NamedTuple):
    """A step on a grid of ranks, as it is predicted."""

    grid: tuple[int, int]  # rows and columns
    times: list[LinkTimes]  # of each call; the last has the messages behind the links
    memory: int  # bytes of a rank
    step: StepChain

    @property
    def bytes_sent(self) -> int:
        """By rank 0."""
        return sum(times.messages.bytes for times in self.times)


def spatial_steps(
    traced: TracedModel, cluster: Cluster, costs: Costs
) -> list[SpatialStep]:
    """The steps on bands of rows and on the squarest grid, where links can execute it.

    The model is executed once on simulated ranks for each grid, for what they send.
    Each of them has a copy of it: there are no steps for many ranks or large copies.
    """
    ranks, found = cluster.ranks, []
    copies = 2 * ranks * sum(param.array.nbytes for param in traced.model.params())
    if max((numpy.ndim(x) for x in traced.inputs), default=0) < _IMAGE_AXES:
        return []
    if ranks == 1 or ranks > _MOST_RANKS or copies > _MOST_BYTES:
        return []
    columns = max(n for n in range(1, math.isqrt(ranks) + 1) if ranks % n == 0)
    for grid in dict.fromkeys([(ranks, 1), (ranks // columns, columns)]):
        try:
            messages = _messages(traced, cluster, grid)
        except (InvalidType, ValueError):  # no links for this, or images too small
            continue
        found.append(_step(traced, cluster, costs, grid, messages))
    return found


def _step(
    traced: TracedModel,
    cluster: Cluster,
    costs: Costs,
    grid: tuple[int, int],
    messages: Sequence[Messages],
) -> SpatialStep:
    times, memory = [], 0.0
    for call, own in zip(traced.calls, messages):
        op, behind = (traced.graph.operations[i] for i in (call.link, call.functions))
        split = spatial_split(op.extents, grid)
        whole = Configuration((1,) * len(op.extents), ())
        passes = costs.task(op, split), costs.task(behind, split)
        times.append(LinkTimes(*passes, own, costs.update(op, whole)))
        memory += 4 * (3 * op.parameters + 2 * op.size * share_of(op, split))
    step = StepChain(cluster, times, [call.path for call in traced.calls])
    return SpatialStep(grid, times, math.ceil(memory), step)


def spatial_split(extents: Sequence[int], grid: tuple[int, int]) -> Configuration:
    """Of images by the grid; vectors are replicated."""
    degrees = [1] * len(extents)
    if len(extents) >= _IMAGE_AXES:
        degrees[2:4] = (min(n, extents[2 + i]) for i, n in enumerate(grid))
    return Configuration(tuple(degrees), ())


def _messages(
    traced: TracedModel, cluster: Cluster, grid: tuple[int, int]
) -> list[Messages]:
    """Of each call on the slowest rank; bytes of rank 0.

    Gradients, and the functions between links, count behind the last call.
    """

    def act(comm: Communicator) -> tuple[Messages, dict[str, Messages]]:
        on_grid, inputs = SpatialGrid(comm, grid), traced.inputs
        parallel = with_strategy(traced.model, on_grid, "spatial", inputs).model
        recorder = Recorder(parallel, timed=True, now=lambda: _sent(comm))
        begun = _sent(comm)
        with recorder, using_config("train", True):
            ys = outputs_of(parallel, inputs)
        middle = _sent(comm)
        backward(ys)
        behind = _sent(comm) - middle
        total = middle - begun + behind._replace(forward=0.0, backward=behind.forward)
        of_links: dict[str, Messages] = {}
        for call in recorder.program.links:
            of_links[call.path] = of_links.get(call.path, NONE) + call.seconds
        return total, of_links

    ranks, machine = cluster.ranks, cluster.link_machine
    with unchanged_generator():
        outcome = simulated.run(act, ranks, machine, lambda *task: 0.0)
    slowest = max(outcome.results, key=lambda found: sum(found[0][:2]))
    (total, _), of_links = slowest, outcome.results[0][1]
    rest = total._replace(bytes=outcome.results[0][0].bytes)
    found = []
    for path in (call.path for call in traced.calls):
        own = of_links.pop(path, NONE)  # all calls of a link, at the first one
        found.append(own)
        rest -= own
    found[-1] += rest._replace(forward=max(0.0, rest.forward))
    return found


def _sent(comm: Communicator) -> Messages:
    """What a simulated rank has sent so far."""
    traffic = comm.traffic
    return Messages(traffic.seconds, 0.0, traffic.bytes, sum(traffic.calls.values()))
