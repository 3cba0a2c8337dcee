"""Training steps on 1 to thousands of ranks, and what limits them.

A rank's time is that of a model of its device, and messages take what the described
network's collectives take: so a step of any number of ranks is predicted in
milliseconds.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from renga.parallel.pipeline.measurement import Segment, SegmentCosts
from renga.parallel.pipeline.partition import partition
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.costs import Device
from renga.parallel.plan.sample_layers import PASSES, Layer

BUCKET = 25 << 20  # bytes of gradients that are summed together


@dataclasses.dataclass(frozen=True)
class Job:
    """A training step: what is computed, and how it is spread.

    Ranks of a tensor-parallel group are neighbours, then come those with the same
    parameters, then the stages of a pipeline.

    Args:
        layers: of a sample.
        batch: the samples of a step, of all ranks.
        data, tensor, stages: ranks along each way; their product is all ranks.
        micro_batches: of a step of a rank.
        interleaved: stages of each rank.
        recomputes: the part of the micro-batches whose forward pass runs again.
        is_spatial: tensor-parallel ranks have parts of images, not of channels.
        gradients: ``"overlapped"`` with the backward pass; ``"sharded"``: scattered
            during the backward pass, where each rank updates a part of the parameters,
            which are gathered during the next forward pass; ``"after"`` the backward
            pass; during the next step (``"late"``); by way of a ``"server"`` on each
            node; by way of servers without waiting for others (``"asynchronous"``), as
            in this library; or by way of servers to which each node sends
            (``"node server"``), and from which it copies parameters when all nodes
            have sent.
        gradient_bytes: of a parameter's gradient in messages.
        parameter_bytes: of a parameter with its gradient and its optimizer's states.
        bucket: bytes of gradients that are summed together.
        cycle: seconds after which gradients are summed that are less than a bucket;
            0 waits for a whole one.
        servers: of ``"node server"``; 0 is one on each node.
        updated: bytes that are read and written to update a parameter.
        cuts: the number of layers of each stage; () has the slowest stage as fast as
            can be.
        hidden: messages that ranks do not wait for while they can compute: of
            tensor-parallel ``"groups"`` or between ``"stages"``.
    """

    layers: Sequence[Layer]
    batch: float
    data: int = 1
    tensor: int = 1
    stages: int = 1
    micro_batches: int = 1
    interleaved: int = 1
    recomputes: float = 0.0
    is_spatial: bool = False
    gradients: str = "overlapped"
    gradient_bytes: float = 4.0
    parameter_bytes: float = 16.0
    bucket: float = BUCKET
    cycle: float = 0.0
    servers: int = 0
    updated: float = 20.0
    cuts: tuple[int, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        """Their number."""
        return self.data * self.tensor * self.stages

    @property
    def samples(self) -> float:
        """The samples of a micro-batch."""
        return self.batch / self.data / self.micro_batches


class Step(NamedTuple):
    """Seconds of a step by what they are spent on, and bytes of a rank."""

    computing: float
    messages: float  # of tensor-parallel groups and between stages
    gradients: float  # that are not hidden, and what computing at their side loses
    bubble: float
    imbalance: float
    stragglers: float
    memory: float
    samples: float

    @property
    def parts(self) -> dict[str, float]:
        """The seconds of each part."""
        return dict(zip(self._fields[:6], self))

    @property
    def seconds(self) -> float:
        """The sum of all parts."""
        return sum(self[:6])

    @property
    def throughput(self) -> float:
        """Samples per second."""
        return self.samples / self.seconds

    @property
    def limit(self) -> str:
        """The part that takes most of the time in which a rank does not compute."""
        parts = self.parts
        del parts["computing"]
        name = max(parts, key=parts.__getitem__)
        return name if parts[name] > 0.01 * self.seconds else "computing"


def predict(job: Job, cluster: Cluster) -> Step:
    """A step of a job on the ranks of a described cluster.

    Raises:
        ValueError: the cluster has no device, or other ranks; there are other cuts than
            stages, or they do not have all layers.
    """
    if job.cuts and (len(job.cuts), sum(job.cuts)) != (job.stages, len(job.layers)):
        raise ValueError(
            f"predict: expected cuts of {len(job.layers)} layers into {job.stages} "
            f"stages, got {job.cuts}"
        )
    if cluster.device is None or cluster.ranks != job.ranks:
        raise ValueError(
            f"predict: expected a cluster of {job.ranks} ranks with a device, got "
            f"{cluster.ranks} with {cluster.device}"
        )
    stages = _stages(job, cluster)
    again = [[own for own in stage if own.recomputed] for stage in stages]
    times, sums = [], []
    for stage, own in zip(stages, again):
        time = PASSES * _forward(job, cluster.device, stage)
        times.append(time + job.recomputes * _forward(job, cluster.device, own))
        total = 2 * _tensor_messages(job, cluster, stage)
        sums.append(total + job.recomputes * _tensor_messages(job, cluster, own))
    slowest, mean = max(times), sum(times) / len(times)
    work = job.micro_batches * mean
    imbalance = job.micro_batches * (slowest - mean)
    work += max(_update(job, cluster.device, stage) for stage in stages)
    messages = job.micro_batches * max(sums)
    if "groups" in job.hidden:
        messages = _beside(work, messages, cluster.device)
    # The first micro-batch goes through the other stages, too.
    others = sum(times) - slowest
    others += (job.stages - 1) * messages / job.micro_batches
    bubble = others / job.interleaved
    messages += _between_stages(job, cluster, stages)
    gradients = max(_gradients(job, cluster, stage) for stage in stages)
    stragglers = cluster.straggling * work
    if job.gradients == "asynchronous":
        stragglers = 0.0
    memory = max(_memory(job, i, stage) for i, stage in enumerate(stages))
    parts = work, messages, gradients, bubble, imbalance, stragglers
    return Step(*parts, memory, job.batch)


def fitted(job: Job, cluster: Cluster, seconds: float) -> Cluster:
    """The cluster with its device at the rate at which a step takes ``seconds``.

    A data sheet has the ratio of computing and memory; a step that was published or
    measured, on one rank most often, the part of both that is reached.

    Raises:
        ValueError: its messages alone take longer.
    """
    device = cluster.device
    assert device is not None

    def scaled(part: float) -> Cluster:
        rates = part * device.flops, part * device.bandwidth
        own = dataclasses.replace(device, flops=rates[0], bandwidth=rates[1])
        return dataclasses.replace(cluster, device=own)

    low, high = 1e-6, 10.0
    if not predict(job, scaled(high)).seconds < seconds:
        raise ValueError(f"fitted: expected more than {seconds} s for the messages")
    for _ in range(60):
        middle = math.sqrt(low * high)
        is_slow = predict(job, scaled(middle)).seconds > seconds
        low, high = (middle, high) if is_slow else (low, middle)
    return scaled(low)


def _forward(job: Job, device: Device, stage: Sequence[Layer]) -> float:
    """Of a micro-batch."""
    return job.samples * sum(layer.seconds(device, job.tensor) for layer in stage)


def _update(job: Job, device: Device, stage: Sequence[Layer]) -> float:
    shared = 1 if job.is_spatial else job.tensor
    shared *= job.data if job.gradients == "sharded" else 1
    number = sum(layer.parameters for layer in stage) / shared
    return job.updated * number / device.bandwidth


def _stages(job: Job, cluster: Cluster) -> list[list[Layer]]:
    layers = list(job.layers)
    if job.stages == 1:
        return [layers]
    if job.cuts:
        ends = list(itertools.accumulate(job.cuts))
        return [layers[end - own : end] for own, end in zip(job.cuts, ends)]
    assert cluster.device is not None
    seconds = [layer.seconds(cluster.device, job.tensor) for layer in layers]
    again = [job.recomputes * s * own.recomputed for s, own in zip(seconds, layers)]
    segments = [
        Segment(str(i), s, 2 * s + more)
        for i, (s, more) in enumerate(zip(seconds, again))
    ]
    cuts = partition(SegmentCosts(segments), job.stages, 0.0, 0.0).stages
    return [[layers[int(i)] for i in stage.links] for stage in cuts]


def _tensor_messages(job: Job, cluster: Cluster, stage: Sequence[Layer]) -> float:
    """Of a pass of a micro-batch over some layers."""
    if job.tensor == 1:
        return 0.0
    total, machine = 0.0, cluster.machine
    same_node = job.tensor <= machine.intra_size
    for layer, group in itertools.groupby(stage):
        times = len(list(group))
        if job.is_spatial and layer.halo > 0:
            size = math.ceil(job.samples * layer.halo)
            total += times * 2 * machine.message(size, same_node)
        elif not job.is_spatial and layer.summed > 0:
            size = math.ceil(job.samples * layer.summed / layer.sums)
            total += times * layer.sums * machine.all_reduce(job.tensor, size)
    return total


def _between_stages(
    job: Job, cluster: Cluster, stages: Sequence[Sequence[Layer]]
) -> float:
    """Activations and their gradients, which ranks wait for in each micro-batch."""
    if job.stages == 1 or "stages" in job.hidden:
        return 0.0
    machine, width = cluster.machine, job.tensor * job.data
    size = max(stage[-1].output for stage in stages[:-1]) * job.samples
    # Each tensor-parallel rank sends a part, of which the others receive copies.
    size /= job.tensor
    if width < machine.intra_size:
        one = machine.node_latency + size / machine.node_bandwidth
    else:
        one = machine.latency + size / (machine.bandwidth * machine.share)
    if job.tensor > 1:
        one += machine.all_reduce(job.tensor, math.ceil(size * job.tensor)) / 2
    return 2 * job.micro_batches * job.interleaved * one


def _gradients(job: Job, cluster: Cluster, stage: Sequence[Layer]) -> float:
    """What a rank waits for after its backward pass, and what sums slow it."""
    if job.data == 1 and not (job.is_spatial and job.tensor > 1):
        return 0.0
    device = cluster.device
    assert device is not None
    # Ranks that share images have all parameters.
    shared = 1 if job.is_spatial else job.tensor
    ranks = job.data * job.tensor // shared
    sizes = [job.gradient_bytes * layer.parameters / shared for layer in stage]

    def seconds_of(size: float) -> float:
        return cluster.machine.all_reduce(ranks, math.ceil(size), stride=shared)

    forward = _forward(job, device, stage)
    if job.gradients == "node server":
        # Gradients are sent during the backward pass, and parameters copied after it.
        way = _by_node_server(job, cluster, sum(sizes))
        return way + max(0.0, way - 2 * forward * job.micro_batches)
    if job.gradients in ("server", "asynchronous"):
        traffic = _by_server(job, cluster, sizes)
        passes = PASSES - (job.gradients != "asynchronous")
        return max(0.0, traffic - passes * forward * job.micro_batches)
    if job.gradients in ("after", "late"):
        seconds = seconds_of(sum(sizes))
        step = PASSES * forward * job.micro_batches
        is_late = job.gradients == "late"
        return _beside(step, seconds, device) if is_late else seconds
    times = [job.samples * layer.seconds(device, job.tensor) for layer in stage]

    def exposed(passes: float, part: float) -> float:
        ends = itertools.accumulate(passes * time for time in reversed(times))
        ready = list(zip(ends, reversed(sizes)))
        return _summed(ready, job, lambda size: part * seconds_of(size), device)

    if job.gradients == "sharded":
        # Gathers before a forward pass are scatters after one, backward in time.
        return exposed(2, 0.5) + exposed(1, 0.5)
    return exposed(2, 1.0)


def _beside(work: float, sums: float, device: Device) -> float:
    """How much longer computing takes with sums at its side."""
    return sums + max(0.0, work - sums / (1 + device.contention)) - work


def _summed(
    ready: Sequence[tuple[float, float]],
    job: Job,
    seconds_of: Callable[[float], float],
    device: Device,
) -> float:
    """How much longer computing takes with the sums of gradients at its side.

    Args:
        ready: what has been computed when a gradient is ready, in seconds, and its
            bytes.
    """
    # The clock at the end of the last sum, and what has been computed by then.
    clock, done, first = 0.0, 0.0, 0
    while first < len(ready):
        start = clock + max(0.0, ready[first][0] - done)
        if job.cycle:  # what is ready, but less than a bucket
            start = math.ceil(start / job.cycle) * job.cycle
        end, size = first, 0.0
        while end < len(ready):
            when, more = ready[end]
            if job.cycle and end > first:
                if when > done + start - clock or size + more > job.bucket:
                    break
            size, end = size + more, end + 1
            if size >= job.bucket:
                break
        if size:
            start = max(start, clock + ready[end - 1][0] - done)
            seconds = seconds_of(size)
            done += start - clock + seconds / (1 + device.contention)
            clock = start + seconds
        first = end
    work = ready[-1][0]
    return clock + max(0.0, work - done) - work


def _by_server(job: Job, cluster: Cluster, sizes: Sequence[float]) -> float:
    """Ranks pull parameters from a server on each node, and push gradients.

    A server has whole arrays, of about as many bytes as others, and ranks of a node
    push the sum of their gradients. Those of this library, which need not wait for each
    other, have equal parts, and ranks push for themselves.

    Source: TensorFlow, High-performance models, 2017.
    """
    machine, nodes, width = cluster.machine, cluster.nodes, cluster.width
    if nodes == 1:
        return 2 * (machine.node_latency + sum(sizes) / machine.node_bandwidth)
    if job.gradients == "asynchronous":
        sent = 2 * (nodes - 1) * width * sum(sizes) / nodes
    else:
        sent = (nodes - 1) * (1 + width) * max(max(sizes), sum(sizes) / nodes)
    return 2 * machine.latency + sent / (machine.bandwidth * machine.share * width)


def _by_node_server(job: Job, cluster: Cluster, size: float) -> float:
    """A node's host adds up what its ranks send it, or copies parameters to each.

    Messages to and from servers pass at the same time, array by array.

    Source: TensorFlow, High-performance models, 2017.
    """
    machine, nodes, width = cluster.machine, cluster.nodes, cluster.width
    within = machine.node_latency + width * size / machine.node_bandwidth
    if nodes == 1:
        return within
    # The node of a server has messages of all others.
    busiest = (nodes - 1) * size / min(job.servers or nodes, nodes)
    bandwidth = machine.bandwidth * machine.share * width
    return max(within, machine.latency + busiest / bandwidth)


def _memory(job: Job, index: int, stage: Sequence[Layer]) -> float:
    """Parameters and activations of the micro-batches that a stage holds."""
    shared = 1 if job.is_spatial else job.tensor
    held = min(job.stages - index, job.micro_batches)
    outputs = [job.samples * layer.output / job.tensor for layer in stage]
    # Only what a layer reads is kept of what is computed again.
    kept = held * sum(outputs) + (0.0 if job.recomputes else sum(outputs))
    return job.parameter_bytes * sum(own.parameters for own in stage) / shared + kept
