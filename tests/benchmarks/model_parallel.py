"""Times training steps on one rank and, model-parallel, on all, in turn.

Run as ``OMP_NUM_THREADS=1 mpiexec -n 2 python -m tests.benchmarks.model_parallel``.
The steps are those of ``tests/benchmarks/steps``: ``long_gpt`` is parallel by sequence,
the others by channel, and the language models' scores stay sharded. In each round,
rank 0 computes a step alone, while the others sleep; then all ranks compute one
together; then each computes an independent one on its fraction of the batch. So all see
the same machine if its speed drifts. Independent steps show what cores that share
memory reach without communication, though each transforms and updates all of the
weights. Ranks wait for each other, so time that other programs take from one of them is
lost for all: the fraction of a core that others had is measured, and rounds in which it
was too large are dropped, unless only few are left.
"""

import argparse
import functools
import os
import statistics
import time
from typing import Any, Callable

import numpy as np

import renga
from renga.optimizer import Optimizer
from tests.benchmarks.steps import renga_steps

QUIET = 0.15  # of a core that others may have
# The samples of a step.
BATCHES = {"gpt": 8, "long_gpt": 1}


def busy_seconds() -> float:
    """What the machine's cores have worked since it started, together."""
    with open("/proc/stat") as file:
        fields = [int(field) for field in file.readline().split()[1:]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def held_bytes(optimizers: list[Any]) -> int:
    """What parameters and optimizers' state take on this rank."""
    arrays = []
    for optimizer in optimizers:
        for param in optimizer.target.params():
            arrays += [param.array, *(param.update_rule.state or {}).values()]
    return sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))


def build(model: str, comm: Any, batch: int) -> tuple[Callable[[], Any], list[Any]]:
    """A step on all ranks of ``comm``, or on this one if None, and its optimizers."""
    optimizers: list[Any] = []
    setup = Optimizer.setup

    def noted(self: Any, link: Any) -> Any:
        optimizers.append(self)
        return setup(self, link)

    def prepare(network: Any, *inputs: Any) -> Any:
        if comm is None:
            return network
        parallelize = functools.partial(renga.distributed.parallelize, network, comm)
        if model == "long_gpt":
            return parallelize("sequence", input="sharded")
        output = "sharded" if model == "gpt" else "replicated"
        return parallelize("channel", *inputs, output=output)

    options: dict[str, Any] = {"batch": batch, "prepare": prepare}
    if comm is not None and model in BATCHES:
        layout = "channel" if model == "gpt" else "batch"
        options["loss_of"] = functools.partial(_loss_of_shards, comm, layout)
    if comm is not None and model == "long_gpt":
        options["take"] = functools.partial(renga.distributed.scatter_sequence, comm)
    Optimizer.setup = noted  # type: ignore[method-assign]
    try:
        return renga_steps.STEPS[model](**options), optimizers
    finally:
        Optimizer.setup = setup  # type: ignore[method-assign]


def _loss_of_shards(comm: Any, layout: str, scores: Any, t: Any) -> Any:
    return renga.distributed.functions.softmax_cross_entropy(comm, scores, t, layout)


def timed(comm: Any, step: Callable[[], Any] | None) -> tuple[float, float]:
    """Seconds that a step takes, and the fraction of a core that others used."""
    comm.barrier()
    busy, own, start = busy_seconds(), time.process_time(), time.perf_counter()
    if step is not None:
        step()
    comm.barrier()
    wall, own = time.perf_counter() - start, time.process_time() - own
    ours = float(comm.all_reduce(np.array([own]))[0])
    return wall, (busy_seconds() - busy - ours) / wall


def compare(comm: Any, model: str, options: argparse.Namespace) -> None:
    """Prints one row of the table."""
    batch = BATCHES.get(model, 64)
    together, optimizers = build(model, comm, batch)
    serial, serial_optimizers = build(model, None, batch)
    # One sample cannot be divided: then the column is that of one rank.
    independent, _ = build(model, None, max(1, batch // comm.size))
    first = comm.rank == 0
    rounds = []
    for k in range(options.rounds + 2):
        # The ranks' generators advance in their common steps only.
        state = np.random.get_state()
        one = timed(comm, serial if first else None)
        np.random.set_state(state)
        parallel = timed(comm, together)
        state = np.random.get_state()
        separate = timed(comm, independent)
        np.random.set_state(state)
        if k >= 2:
            times, others = zip(one, parallel, separate)
            rounds.append((*times, max(others)))
    rounds.sort(key=lambda times: times[3])
    kept = [r for r in rounds if r[3] < QUIET]
    kept = kept if len(kept) >= 3 else rounds[:3]
    held = int(comm.all_reduce(np.array([held_bytes(optimizers)]), "max")[0])
    if first:
        one, parallel, separate = (
            statistics.median(column) * 1e3 for column in list(zip(*kept))[:3]
        )
        ratios = sorted(r[0] / r[1] for r in kept)
        reached = statistics.median(r[0] / r[2] for r in kept)
        print(
            f"{model:>8}{comm.size:6}{one:11.1f}{parallel:14.1f}"
            f"{statistics.median(ratios):9.2f}  ({ratios[0]:.2f}-{ratios[-1]:.2f})"
            f"{separate:16.1f}{reached:8.2f}"
            f"{held / held_bytes(serial_optimizers):9.2f}{len(kept):5}/{len(rounds)}"
            f"{kept[-1][3]:8.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["vgg", "dcgan"])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    comm = renga.distributed.create_communicator("mpi")
    np.random.seed(0)
    if comm.rank == 0:
        print("   model ranks  1 rank ms  all ranks ms   faster  (spread)", end="")
        print("  independent ms  faster     memory  rounds  others")
    for model in options.models:
        compare(comm, model, options)


if __name__ == "__main__":
    main()
