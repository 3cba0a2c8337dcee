"""Times training steps on one rank and, channel-parallel, on several, in turn.

Run as ``python -m tests.benchmarks.model_parallel``. The steps are those of
``tests/benchmarks/steps``, every rank has one thread. Every round starts a job for
each number of ranks, one after the other, so that a machine whose speed drifts is the
same for both. Ranks wait for each other: what other programs take from one of them is
lost for all, so the share that others had of the machine is shown, and steps in which
it was over a tenth of a core are left out if enough are left.
"""

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np


def busy_seconds() -> float:
    """What the machine's cores have worked since it started, together."""
    with open("/proc/stat") as file:
        fields = [int(field) for field in file.readline().split()[1:]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def held_bytes(optimizers) -> int:
    """What parameters and optimizers' state take on this rank."""
    total = 0
    for optimizer in optimizers:
        for param in optimizer.target.params():
            state = param.update_rule.state or {}
            arrays = [param.array, *state.values()]
            total += sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))
    return total


def measure(model: str, steps: int) -> None:
    """Runs on every rank; rank 0 prints (seconds, share of others) of every step."""
    import renga
    from renga.optimizer import Optimizer
    from tests.benchmarks.steps import renga_steps

    comm = renga.distributed.create_communicator("mpi")
    np.random.seed(0)
    optimizers: list = []
    setup = Optimizer.setup

    def noted(self, link):
        optimizers.append(self)
        return setup(self, link)

    Optimizer.setup = noted  # type: ignore[method-assign]

    def prepare(network, *inputs):
        if comm.size == 1:
            return network
        return renga.distributed.parallelize(network, comm, "channel", *inputs)

    step = functools.partial(renga_steps.STEPS[model], prepare=prepare)()
    for _ in range(3):
        step()
    times = []
    for _ in range(steps):
        comm.barrier()
        busy, own, start = busy_seconds(), time.process_time(), time.perf_counter()
        for _ in range(2):  # the machine counts in hundredths of a second
            step()
        comm.barrier()
        wall, own = time.perf_counter() - start, time.process_time() - own
        ours = float(comm.all_reduce(np.array([own]))[0])
        times.append((wall / 2, (busy_seconds() - busy - ours) / wall))
    held = int(comm.all_reduce(np.array([held_bytes(optimizers)]), "max")[0])
    if comm.rank == 0:
        print(json.dumps({"times": times, "held": held}), flush=True)


def run(model: str, ranks: int, steps: int) -> dict:
    """The same in a job of its own."""
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [os.path.join(os.path.dirname(sys.executable), "mpiexec"), "-n"]
    command += [str(ranks), sys.executable, "-m", "tests.benchmarks.model_parallel"]
    command += ["--measure", model, "--steps", str(steps)]
    done = subprocess.run(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def quiet(times: list) -> list[float]:
    """The steps during which others left the machine alone, or all if they are few."""
    kept = [seconds for seconds, others in times if others < 0.1]
    return kept if len(kept) >= 3 else [seconds for seconds, _ in times]


def compare(model: str, options: argparse.Namespace) -> None:
    """Prints one row of the table."""
    counts = (1, options.ranks)
    results: dict[int, list] = {ranks: [] for ranks in counts}
    held = {}
    for _ in range(options.rounds):
        for ranks in counts:
            result = run(model, ranks, options.steps)
            results[ranks] += result["times"]
            held[ranks] = result["held"]
    one, several = (statistics.median(quiet(results[ranks])) * 1e3 for ranks in counts)
    used = [len(quiet(results[ranks])) for ranks in counts]
    others = statistics.median(
        share for times in results.values() for _, share in times
    )
    print(
        f"{model:>6}{options.ranks:6}{one:10.1f}{several:14.1f}{one / several:9.2f}"
        f"{held[options.ranks] / held[1]:9.2f}{used[0]:8}/{used[1]:<6}{others:6.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["vgg", "dcgan"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.steps)
        return
    print(" model ranks  1 rank ms  all ranks ms  faster   memory  steps used  others")
    for model in options.models:
        compare(model, options)


if __name__ == "__main__":
    main()
