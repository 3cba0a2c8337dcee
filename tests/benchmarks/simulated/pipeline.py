"""Predicts the training of VGG-16 on ranks with a slow network between them.

Run as ``OMP_NUM_THREADS=1 python -m tests.benchmarks.simulated.pipeline``. What layers,
updates and predictions take is measured in this process, as processor time; virtual
ranks compute for as long and exchange messages of the true sizes. Data parallelism
reduces the gradients of each layer while the layers before it compute theirs.
"""

import argparse
import functools
import time
from typing import Any, NamedTuple

import numpy as np

import renga.links as L
from renga.communicators import simulated
from renga.parallel.pipeline.measurement import SegmentCosts, measure
from renga.parallel.pipeline.partition import Stage, partition
from renga.parallel.pipeline.schedule import Action, Stream, flush_schedule
from tests.benchmarks.pipeline import batch_of, optimizer_of
from tests.benchmarks.steps.renga_steps import VGG

BATCH = 64
VALUE, GRADIENT = 0, 1  # tags


class Times(NamedTuple):
    """Seconds on one rank, by the number of parts that a batch is computed in."""

    costs: dict[int, SegmentCosts]
    update: float  # of all parameters
    predict: float


def measured(parts: list[int], repetitions: int) -> Times:
    """The least of a few measurements."""
    model = L.Classifier(VGG())
    optimizer = optimizer_of(model)
    batch = batch_of(BATCH)
    optimizer.update(model, *batch)
    costs = {}
    for m in parts:
        inputs = [x[: BATCH // m] for x in batch]
        runs = [
            measure(model, model, inputs, m, time.process_time)
            for _ in range(repetitions)
        ]
        costs[m] = runs[0]
        for i, segment in enumerate(costs[m].segments):
            for name in ("forward", "backward", "weights"):
                least = min(getattr(run.segments[i], name) for run in runs)
                setattr(segment, name, least)
    model(*batch).backward()
    outs = [param.array.copy() for param in model.params()]
    seconds: dict[str, list[float]] = {"update": [], "predict": []}
    for _ in range(repetitions):
        for name, act in (
            ("predict", functools.partial(optimizer.predict, 2, outs)),
            ("update", optimizer.update),
        ):
            start = time.process_time()
            act()
            seconds[name].append(time.process_time() - start)
    return Times(costs, min(seconds["update"]), min(seconds["predict"]))


def step_of(costs: SegmentCosts) -> float:
    """Seconds of both passes of all layers."""
    return sum(segment.seconds for segment in costs.segments)


def data_parallel_step(comm: Any, costs: SegmentCosts, update: float) -> float:
    """Seconds of a step in which every rank computes a whole model."""
    gradients = [
        np.zeros(segment.parameter_bytes // 4, np.float32) for segment in costs.segments
    ]
    start = comm.clock
    comm.compute(sum(segment.forward for segment in costs.segments))
    works = []
    for segment, gradient in reversed(list(zip(costs.segments, gradients))):
        comm.compute(segment.backward + segment.weights)
        works.append(comm.all_reduce(gradient, "mean", out=gradient, wait=False))
    for work in works:
        work.wait()
    comm.compute(update)
    return comm.clock - start


def actions_of(kind: str, rank: int, ranks: int, m: int, steps: int) -> list[Action]:
    """Of one rank, for some batches."""
    if kind != "pipedream":
        return flush_schedule(kind, ranks, m)[rank] * steps
    stream = Stream(rank, ranks, m)
    actions = [action for _ in range(steps) for action in stream.next_batch()]
    return [*actions, *stream.drain()]


def pipeline_step(
    comm: Any,
    stages: list[Stage],
    actions: list[Action],
    update: float,
    predict: float,
) -> float:
    """Seconds of a step: the time between updates while the pipeline is full.

    Args:
        comm: a virtual rank for each stage.
        stages: what they take.
        actions: of this rank.
        update: seconds for all parameters.
        predict: likewise, before each pass.
    """
    rank, last = comm.rank, comm.size - 1
    stage = stages[rank]
    share = stage.parameters / sum(each.parameters for each in stages)
    received = np.zeros(stage.received, np.uint8)
    sent = np.zeros(0 if rank == last else stages[rank + 1].received, np.uint8)
    updates = []
    for kind, _, _ in actions:
        if kind == "F":
            if rank > 0:
                comm.recv(rank - 1, VALUE, out=received)
            comm.compute(stage.forward + predict * share)
            if rank < last:
                comm.send(sent, rank + 1, VALUE, wait=False)
        elif kind == "B":
            if rank < last:
                comm.recv(rank + 1, GRADIENT, out=sent)
            comm.compute(stage.backward + predict * share)
            if rank > 0:
                comm.send(received, rank - 1, GRADIENT, wait=False)
        elif kind == "W":
            comm.compute(stage.weights)
        else:
            comm.compute(update * share)
            updates.append(comm.clock)
    first, end = len(updates) // 3, 2 * len(updates) // 3
    return (updates[end] - updates[first]) / (end - first)


def slowest(function: Any, ranks: int, machine: simulated.Machine) -> float:
    """The longest of the seconds that the ranks return."""
    outcome = simulated.run(function, ranks, machine, seconds_of=lambda rank, task: 0.0)
    return max(outcome.results)


def pipelined(
    times: Times, ranks: int, machine: simulated.Machine, kind: str, m: int, steps: int
) -> tuple[float, list[Stage]]:
    """Seconds of a step, and the stages."""
    bytes_time = 1 / machine.bandwidth
    stages = list(partition(times.costs[m], ranks, bytes_time, 0.0).stages)
    predict = times.predict if kind == "pipedream" else 0.0

    def act(comm: Any) -> float:
        actions = actions_of(kind, comm.rank, ranks, m, steps)
        return pipeline_step(comm, stages, actions, times.update, predict)

    return slowest(act, ranks, machine), stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", nargs="+", type=int, default=[2, 4, 8])
    parser.add_argument("--bandwidth", type=float, default=12.5e6, help="bytes/second")
    parser.add_argument("--latency", type=float, default=1e-4, help="seconds")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--repetitions", type=int, default=2)
    options = parser.parse_args()
    machine = simulated.Machine(latency=options.latency, bandwidth=options.bandwidth)
    flushed = [1, 2, 4, 8]
    times = measured(sorted({*flushed, *options.ranks}), options.repetitions)
    one = step_of(times.costs[1]) + times.update
    print(
        f"a step of {BATCH} images on one rank: {one * 1e3:.0f} ms, of which update "
        f"{times.update * 1e3:.1f}; a prediction: {times.predict * 1e3:.1f} ms"
    )
    for ranks in options.ranks:
        reduce = functools.partial(data_parallel_step, update=times.update)
        each = functools.partial(reduce, costs=times.costs[1])
        shared = functools.partial(reduce, costs=times.costs[ranks])
        found = {
            f"data parallel, {BATCH} images on each rank": ranks
            * BATCH
            / slowest(each, ranks, machine),
            f"data parallel, {BATCH} images in all": BATCH
            / slowest(shared, ranks, machine),
        }
        flush = {
            m: BATCH
            / pipelined(times, ranks, machine, "1f1b", m, options.steps // 6)[0]
            for m in flushed
        }
        best = max(flush, key=lambda m: flush[m])
        found["one stage at a time (1f1b, m=1)"] = flush[1]
        found[f"1f1b, m={best}"] = flush[best]
        seconds, stages = pipelined(
            times, ranks, machine, "pipedream", 1, options.steps
        )
        found["spectrain"] = BATCH / seconds
        print(f"\n{ranks} ranks{'':33}images/s  spectrain is faster by")
        for name, speed in found.items():
            print(f"{name:42}{speed:6.1f}{found['spectrain'] / speed:12.2f}")
        print("stages:", end="")
        for stage in stages:
            print(
                f"  {stage.links[0]} {stage.seconds * 1e3:.0f} ms, "
                f"receives {stage.received / 1e6:.2f} MB;",
                end="",
            )
        print(flush=True)


if __name__ == "__main__":
    main()
