"""Times data-parallel training steps on 1 x 1 and on 2 ranks x 1 thread, in turn.

Run as ``python -m tests.benchmarks.data_parallel`` where ``mpiexec`` is to be found.
Each rank is pinned to a core. Every round starts the single process, the ranks with
half of its batch each (strong scaling) and those with a whole one each (weak), one
after the other, so that a machine whose speed drifts is the same for all. A time is
the least of all its steps, or the median with ``--median``: what else runs on the
cores can only lengthen a step. ``--cpu`` takes the time of rank 0's threads on its core
instead, waiting not included, where cores are busy otherwise.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

BATCH = 64


def measure(
    model: str, batch: int, steps: int, ranks: int, synchronized: bool, cpu: bool
) -> None:
    """Prints this rank 0's times of ``steps`` steps in milliseconds."""
    import numpy as np

    from renga import distributed
    from tests.benchmarks.steps import data_parallel_steps

    comm = None
    if ranks > 1:
        comm = distributed.create_communicator("mpi")
        os.sched_setaffinity(0, {comm.rank % (os.cpu_count() or 1)})
    else:
        os.sched_setaffinity(0, {0})
    np.random.seed(0 if comm is None else comm.rank)
    step = data_parallel_steps.STEPS[model](batch, comm, synchronized)
    for _ in range(3):
        step()
    clock = time.process_time if cpu else time.perf_counter
    times = []
    for _ in range(steps):
        start = clock()
        step()
        times.append(clock() - start)
    if comm is None or comm.rank == 0:
        print(*(f"{t * 1e3:.3f}" for t in times))


def run(
    model: str, batch: int, ranks: int, sync: bool, options: argparse.Namespace
) -> list[float]:
    """The same in new processes."""
    command = ["mpiexec", "-n", str(ranks)] if ranks > 1 else []
    command += [sys.executable, "-m", "tests.benchmarks.data_parallel", "--measure"]
    command += [str(ranks), "--models", model, "--batch", str(batch)]
    command += ["--steps", str(options.steps)]
    command += ["--synchronized"] * sync + ["--cpu"] * options.cpu
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    out = subprocess.run(
        command, env=env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True
    ).stdout
    return [float(word) for word in out.split()]


def compare(model: str, options: argparse.Namespace) -> None:
    """Prints one row of the table."""
    kinds = {
        "one": (BATCH, 1, False),
        "strong": (BATCH // 2, 2, False),
        "weak": (BATCH, 2, False),
    }
    if options.synchronized:
        kinds["sync"] = (BATCH, 2, True)
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(options.rounds):
        for kind, (batch, ranks, sync) in kinds.items():
            times[kind] += run(model, batch, ranks, sync, options)
    reduce = statistics.median if options.median else min
    ms = {kind: reduce(values) for kind, values in times.items()}
    row = f"{model:>6}{ms['one']:9.1f}{ms['strong']:9.1f}{ms['weak']:9.1f}"
    row += f"{ms['one'] / ms['strong']:9.2f}{2 * ms['one'] / ms['weak']:9.2f}"
    if "sync" in ms:
        row += f"{100 * (ms['sync'] / ms['weak'] - 1):9.1f} %"
    print(row, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["vgg", "dcgan"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--median", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument(
        "--synchronized", action="store_true", help="batch normalization of all ranks"
    )
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        model, sync = options.models[0], options.synchronized
        ranks = options.measure
        measure(model, options.batch, options.steps, ranks, sync, options.cpu)
        return
    print(" model   1x1 ms  2x1 32s  2x1 64s   strong     weak")
    for model in options.models:
        compare(model, options)


if __name__ == "__main__":
    main()
