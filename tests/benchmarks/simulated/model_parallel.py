"""Predicts channel-parallel training steps on many simulated ranks.

Run as ``OMP_NUM_THREADS=1 python -m tests.benchmarks.simulated.model_parallel``. One
rank computes what it would with the others, timed by its processor time; communication
is timed by the simulated machine, by default with one rank on each node. Communication
in the background counts where it takes longer than the computation.
"""

import argparse
import contextlib
import functools
import io
import time

import numpy as np

import renga
from renga.communicators import simulated
from tests.benchmarks.steps import renga_steps


def predict(model: str, comm: simulated.SimulatedCommunicator, steps: int) -> dict:
    """Seconds: computing, communication, exposed communication; bytes sent."""

    def prepare(network, *inputs):
        return renga.distributed.parallelize(network, comm, "channel", *inputs)

    np.random.seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        step = functools.partial(renga_steps.STEPS[model], prepare=prepare)()
    step()
    times = []
    for _ in range(steps):
        before = (comm.traffic.seconds, comm.traffic.background_seconds)
        sent, start = comm.traffic.bytes, time.process_time()
        step()
        times.append(time.process_time() - start)
    waited = comm.traffic.seconds - before[0]
    background = comm.traffic.background_seconds - before[1]
    computing = min(times)
    return {
        "computing": computing,
        "waiting": waited + max(0.0, background - computing),
        "bytes": comm.traffic.bytes - sent,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["vgg", "dcgan"])
    parser.add_argument(
        "--ranks", nargs="+", type=int, default=[1, 2, 4, 8, 16, 32, 64]
    )
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--latency", type=float, default=5e-6, help="seconds")
    parser.add_argument("--bandwidth", type=float, default=12.5e9, help="bytes/second")
    parser.add_argument("--one-node", action="store_true", help="all ranks on one node")
    options = parser.parse_args()
    print(" model ranks  computing ms  waiting ms  faster  sent MB")
    for model in options.models:
        one = 0.0
        for ranks in options.ranks:
            numbers = dict(latency=options.latency, bandwidth=options.bandwidth)
            if options.one_node:
                numbers = {f"node_{name}": value for name, value in numbers.items()}
                numbers["intra_size"] = ranks
            found = predict(model, simulated.connect(ranks, **numbers), options.steps)
            total = found["computing"] + found["waiting"]
            one = one or total
            print(
                f"{model:>6}{ranks:6}{found['computing'] * 1e3:14.1f}"
                f"{found['waiting'] * 1e3:12.1f}{one / total:8.2f}"
                f"{found['bytes'] / 1e6:9.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
