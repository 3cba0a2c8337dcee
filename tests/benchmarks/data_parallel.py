"""Times data-parallel training steps on 1 x 1 and on 2 ranks x 1 thread, in turn.

Run as ``python -m tests.benchmarks.data_parallel`` with ``mpiexec`` on the path. Each
rank is pinned to a core. Every round starts the single process, the ranks with half of
its batch each (strong scaling) and with a whole one each (weak scaling), one after the
other, so that all see the same machine if its speed drifts. In brackets: two
independent processes at once, without communication, which ranks cannot exceed; what
they lose, the cores lose by sharing memory. A time is the minimum over all steps, or
the median with ``--median``: other programs can only lengthen a step. ``--cpu`` takes
the processor time of rank 0's threads instead, waiting not included, for busy machines.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

BATCH = 64


def measure(options: argparse.Namespace) -> None:
    """Prints this rank 0's times of the steps in milliseconds."""
    import numpy as np

    from renga import distributed
    from tests.benchmarks.steps import data_parallel_steps

    comm = None
    if options.measure > 1:
        comm = distributed.create_communicator("mpi")
        os.sched_setaffinity(0, {comm.rank % (os.cpu_count() or 1)})
    else:
        os.sched_setaffinity(0, {options.core})
    np.random.seed(0 if comm is None else comm.rank)
    make = data_parallel_steps.STEPS[options.models[0]]
    step = make(options.batch, comm, options.synchronized)
    for _ in range(3):
        step()
    clock = time.process_time if options.cpu else time.perf_counter
    times = []
    for _ in range(options.steps):
        start = clock()
        step()
        times.append(clock() - start)
    if comm is None or comm.rank == 0:
        print(*(f"{t * 1e3:.3f}" for t in times))


def run(
    model: str, batch: int, ranks: int, sync: bool, options: argparse.Namespace
) -> list[float]:
    """The same in new processes; with ``ranks`` 0 in two at once that send nothing."""
    command = ["mpiexec", "-n", str(ranks)] if ranks > 1 else []
    command += [sys.executable, "-m", "tests.benchmarks.data_parallel", "--measure"]
    command += [str(max(1, ranks)), "--models", model, "--batch", str(batch)]
    command += ["--steps", str(options.steps)]
    command += ["--synchronized"] * sync + ["--cpu"] * options.cpu
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [*command, "--core", str(core)],
            env=env,
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        for core in range(1 if ranks else 2)
    ]
    outs = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise RuntimeError(f"{' '.join(command)} failed")
    return [float(word) for word in outs[0].split()]


def compare(model: str, options: argparse.Namespace) -> None:
    """Prints one row of the table."""
    kinds = {
        "one": (BATCH, 1, False),
        "half independent": (BATCH // 2, 0, False),
        "strong": (BATCH // 2, 2, False),
        "independent": (BATCH, 0, False),
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
    one = ms["one"]
    row = f"{model:>6}{one:9.1f}{ms['strong']:9.1f}{ms['weak']:9.1f}"
    row += f"{one / ms['strong']:9.2f} ({one / ms['half independent']:.2f})"
    row += f"{2 * one / ms['weak']:9.2f} ({2 * one / ms['independent']:.2f})"
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
    parser.add_argument("--core", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options)
        return
    print(" model   1x1 ms  2x1 32s  2x1 64s   strong (indep.)  weak (indep.)")
    for model in options.models:
        compare(model, options)


if __name__ == "__main__":
    main()
