"""Times steps with sharded optimizer states on two ranks of one thread each.

Run as ``python -m tests.benchmarks.sharded_states``. The ways take turns: whole states
and shared updates (the default), then ``shard="states"``, ``"gradients"`` and
``"parameters"``; each is a pair of processes pinned to two cores that trains VGG-16 for
CIFAR by MomentumSGD, or by Adam with ``--adam``. With ``--messages`` they share no
memory, as on two nodes, and gather sharded parameters. Prints the median milliseconds
of a step on rank 0 and, of a rank, the MiB of states and of parameters that it keeps,
of what is resident beyond what was before the model was made, of the same if a page
that n ranks share counts as one n-th, and of what was resident at most. The same in
PyTorch: zero_torch.py of the peers, ``rss_mib`` and ``peak_mib``.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import time

from renga.launch import mpiexec_command, mpiexec_environment

WAYS = ("none", "states", "gradients", "parameters")
MIB = 1 << 20


def resident() -> float:
    """MiB of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def proportional() -> float:
    """MiB of this process, of a page that n processes share one n-th."""
    with open("/proc/self/smaps_rollup") as file:
        found = re.search(r"^Pss: +(\d+) kB", file.read(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024


def measure(options: argparse.Namespace) -> None:
    """Prints this way's times and memory on rank 0."""
    import numpy as np

    import renga
    import renga.links as L
    from renga import distributed
    from renga.parallel.data.sharded_parameters.node_parameter import (
        is_shared,
    )
    from tests.benchmarks.steps.renga_steps import VGG

    comm = distributed.create_communicator("messages" if options.messages else "mpi")
    os.sched_setaffinity(0, {comm.rank % (os.cpu_count() or 1)})
    np.random.seed(comm.rank)
    before, before_proportional = resident(), proportional()
    model = L.Classifier(VGG())
    model.compute_accuracy = False
    kind = renga.optimizers.Adam if options.adam else renga.optimizers.MomentumSGD
    shard = None if options.measure == "none" else options.measure
    optimizer = distributed.create_multi_node_optimizer(
        kind().setup(model), comm, shard=shard
    )
    x = np.random.randn(options.batch, 3, 32, 32).astype("f")
    t = np.random.randint(0, 10, options.batch).astype("i")
    clock = time.process_time if options.cpu else time.perf_counter
    times = []
    for i in range(options.steps + 3):
        start = clock()
        optimizer.update(model, x, t)
        if i >= 3:
            times.append(clock() - start)
    states = sum(
        state.nbytes
        for param in model.params()
        for state in (param.update_rule.state or {}).values()
    )
    params = sum(
        param.size * param.dtype.itemsize / (comm.size if is_shared(param) else 1)
        for param in model.params()
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    memory = resident() - before, proportional() - before_proportional, peak - before
    if comm.rank == 0:
        milliseconds = statistics.median(times) * 1e3
        print(milliseconds, states / MIB, params / MIB, *memory)


def run(way: str, options: argparse.Namespace) -> list[float]:
    command = [*mpiexec_command(2), sys.executable, "-m", __spec__.name]
    command += ["--measure", way, "--steps", str(options.steps)]
    command += ["--batch", str(options.batch)]
    command += ["--adam"] * options.adam + ["--cpu"] * options.cpu
    command += ["--messages"] * options.messages
    done = subprocess.run(
        list(map(str, command)),
        env={**mpiexec_environment(2), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [float(word) for word in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--adam", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="processor time of rank 0")
    parser.add_argument("--messages", action="store_true", help="without shared memory")
    parser.add_argument("--measure", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options)
        return
    rows: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way in WAYS:
            rows[way].append(run(way, options))
    head = ("shard", "ms", "states MiB", "params MiB", "resident MiB")
    head += ("own share MiB", "peak MiB")
    print("".join(f"{name:>14}" for name in head))
    for way, values in rows.items():
        medians = [statistics.median(column) for column in zip(*values)]
        print(f"{way:>14}" + "".join(f"{m:>14.1f}" for m in medians))


if __name__ == "__main__":
    main()
