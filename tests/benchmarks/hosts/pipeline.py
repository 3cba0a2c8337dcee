"""VGG-16 on two hosts with a slow network: data parallelism and pipelines.

    python -m tests.benchmarks.hosts.pipeline  # as root: makes the hosts
    python -m tests.benchmarks.hosts.pipeline --rates 1 0.1
    python -m tests.benchmarks.hosts.pipeline --rank ...  # what runs on each host

The hosts are network namespaces (tests/communicators/transport/mpi/hosts.py). Each way
to train takes a few steps in a row, in turn. Prints the median images per second with
the least and greatest, for each rate in Gbit/s, and by how much SpecTrain is faster.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

BATCH = 64
# Steps of a turn: those of data parallelism take seconds.
WAYS: dict[str, tuple[dict[str, Any], int]] = {
    "data parallel, 64 images in all": ({"images": BATCH // 2}, 2),
    "data parallel, 64 images on each rank": ({"images": BATCH}, 2),
    "one stage at a time (m = 1)": ({"schedule": "gpipe", "micro_batches": 1}, 10),
    "1f1b, m = 4": ({"schedule": "1f1b", "micro_batches": 4}, 10),
    "spectrain": ({"schedule": "pipedream", "weights": "spectrain"}, 20),
}


def data_parallel_step(comm: Any, images: int) -> Callable[[], None]:
    """A step of a model on each rank, whose gradients are sent as they come."""
    import renga.links as L
    from renga.distributed import create_multi_node_optimizer
    from tests.benchmarks.pipeline import batch_of, optimizer_of
    from tests.benchmarks.steps.renga_steps import VGG

    model = L.Classifier(VGG())
    optimizer = create_multi_node_optimizer(optimizer_of(model), comm)
    return functools.partial(optimizer.update, model, *batch_of(images))


def step_of(comm: Any, options: dict[str, Any]) -> tuple[Callable[[], None], int, Any]:
    """A step, the images that all ranks compute in it, and the pipeline, if it is."""
    from tests.benchmarks.pipeline import batch_of, pipeline_step

    if "images" in options:
        images = options["images"]
        return data_parallel_step(comm, images), images * comm.size, None
    step, model = pipeline_step(comm, batch_of(BATCH), options)
    return step, BATCH, model


def play_rank(turns: int) -> None:
    """Trains in all ways; rank 0 prints what they reached, and where the cut is."""
    from renga.distributed import create_communicator

    comm = create_communicator("mpi")
    ways = {name: step_of(comm, options) for name, (options, _) in WAYS.items()}
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, (step, images, _) in ways.items():
            steps = WAYS[name][1] if turn > 0 else 2
            comm.barrier()
            begun = time.perf_counter()
            for _ in range(steps):
                step()
            comm.barrier()
            if turn > 0:
                speeds[name].append(steps * images / (time.perf_counter() - begun))
    for _, _, model in ways.values():
        if model is not None:
            model.drain()
    if comm.rank == 0:
        print("row" + json.dumps(speeds))
        print(f"cut{ways['spectrain'][2].partition}", flush=True)


def report(rate: str, output: str) -> None:
    """Prints the table of one rate."""
    rows = [line[3:] for line in output.splitlines() if line.startswith("row")]
    assert rows, output
    speeds = json.loads(rows[0])
    own = statistics.median(speeds["spectrain"])
    print(f"\n{rate + ' Gbit/s':42}images/s  (spread)         spectrain is faster by")
    for name, found in speeds.items():
        median = statistics.median(found)
        spread = f"({min(found):.1f}-{max(found):.1f})"
        print(f"{name:42}{median:8.1f}  {spread:16}{own / median:8.2f}")
    print(output[output.index("cut") + 3 :].strip(), flush=True)


def main() -> None:
    from tests.communicators.transport.mpi.hosts import hosts, missing

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", nargs="+", default=["0.1"], help="in Gbit/s")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rank", action="store_true", help="what runs on a host")
    options = parser.parse_args()
    if options.rank:
        play_rank(options.turns)
        return
    if missing():
        sys.exit(f"pipeline: {missing()}")
    with tempfile.TemporaryDirectory() as name:
        with hosts(2, pathlib.Path(name)) as pair:
            for rate in options.rates:
                pair.limit(int(float(rate) * 1000))
                arguments = ["--rank", "--turns", str(options.turns)]
                done = pair.run(__file__, *arguments, timeout=600)
                assert done.returncode == 0, done.stdout
                report(rate, done.stdout)


if __name__ == "__main__":
    main()
