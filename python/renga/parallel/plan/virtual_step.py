"""A data-parallel step of thousands of virtual ranks: shapes and clocks only."""

from __future__ import annotations

import math
import random

import numpy

from renga.communicators import simulated
from renga.communicators.simulated import VirtualCommunicator
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.scaling import Job


def simulate(job: Job, cluster: Cluster, seed: int = 0) -> float:
    """The seconds of a step of which every rank is simulated.

    Each rank computes its layers on its clock, so many times slower or faster than
    others as a normal deviate of ``cluster.stragglers`` says, and sums gradients with
    all others, in buckets. :func:`~renga.planning.scaling.predict` is the mean over
    such draws.

    Raises:
        ValueError: the job is not data-parallel, with gradients that are summed during
            or after the backward pass, or the cluster has no device, other ranks, or a
            device that sums slow.
    """
    device = cluster.device
    is_known = job.gradients in ("overlapped", "after") and not job.cycle
    is_known = is_known and device is not None and not device.contention
    if device is None or not is_known or not job.data == job.ranks == cluster.ranks:
        raise ValueError(
            f"simulate: expected a data-parallel job on a device of {job.ranks} ranks, "
            f"got {job.gradients!r} gradients in cycles of {job.cycle} s, "
            f"{job.data} of {job.ranks} ranks along samples, and a cluster of "
            f"{cluster.ranks} with {device}"
        )
    generator = random.Random(seed)
    pace = [max(0.0, generator.gauss(1, cluster.stragglers)) for _ in range(job.data)]
    seconds = [job.samples * layer.seconds(device) for layer in job.layers]
    again = [s for s, layer in zip(seconds, job.layers) if layer.recomputed]
    sizes = [job.gradient_bytes * layer.parameters for layer in job.layers]
    parameters = sum(layer.parameters for layer in job.layers)
    update = job.updated * parameters / device.bandwidth
    bucket = job.bucket if job.gradients == "overlapped" else math.inf
    # Never written to, and shared by all: only its shape counts.
    gradients = numpy.empty(math.ceil(sum(sizes) / 4), numpy.float32)

    def step(comm: VirtualCommunicator) -> None:
        own, waiting, works = pace[comm.rank], 0.0, []
        work = (3 * job.micro_batches - 2) * sum(seconds)
        work += job.micro_batches * job.recomputes * sum(again)
        comm.compute(own * work)
        for i, (forward, size) in enumerate(zip(seconds[::-1], sizes[::-1]), 1):
            comm.compute(own * 2 * forward)
            waiting += size
            if waiting >= bucket or (i == len(sizes) and waiting):
                x = gradients[: math.ceil(waiting / 4)]
                works.append(comm.all_reduce(x, out=x, wait=False))
                waiting = 0.0
        for work in works:
            work.wait()
        comm.compute(own * update)

    outcome = simulated.run(step, job.data, cluster.machine, lambda *_: 0.0, False)
    return max(outcome.seconds)
