"""Data-parallel training on two hosts over slow and fast networks.

    python -m tests.benchmarks.hosts.data_parallel  # as root: makes the hosts
    python -m tests.benchmarks.hosts.data_parallel --rank  # what runs on each host

The hosts are network namespaces (tests/communicators/transport/mpi/hosts.py). Prints
the median milliseconds of a training step of an MLP (784, eight times 512, 10; 1024
samples on each rank, 9.0 MB of gradients) without communication, then with gradients
sent after the backward pass, or while it runs, in 32 or 16 bits. They take turns.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np

WAYS: dict[str, tuple[bool | None, str | None]] = {
    "alone": (None, None),
    "after, 32 bits": (False, None),
    "overlapped, 32 bits": (True, None),
    "after, 16 bits": (False, "float16"),
    "overlapped, 16 bits": (True, "float16"),
}


def play_rank(steps: int) -> None:
    """Trains, and prints a row of the table on rank 0."""
    import renga
    import renga.functions as F
    import renga.links as L
    from renga.distributed import create_communicator, create_multi_node_optimizer

    comm = create_communicator("mpi")
    model = renga.Sequential()
    for before in [784] + [512] * 7:
        model.append(L.Linear(before, 512))
        model.append(F.relu)
    model.append(L.Linear(512, 10))
    optimizer = renga.optimizers.MomentumSGD(0.01).setup(model)
    optimizer = create_multi_node_optimizer(optimizer, comm)
    random = np.random.RandomState(comm.rank)
    x = random.normal(size=(1024, 784)).astype("float32")
    t = random.randint(0, 10, 1024).astype("int32")

    def loss(x, t):
        return F.softmax_cross_entropy(model(x), t)

    def step(overlaps: bool | None) -> None:
        if overlaps is None:
            model.cleargrads()
            loss(x, t).backward()
            optimizer.actual_optimizer.update()
        elif overlaps:
            optimizer.update(loss, x, t)
        else:
            model.cleargrads()
            loss(x, t).backward()
            optimizer.update()

    times: dict[str, list[float]] = {name: [] for name in WAYS}
    for turn in range(steps + 1):
        for name, (overlaps, dtype) in WAYS.items():
            comm.set_config("allreduce_grad_dtype", value=dtype)
            comm.barrier()
            begun = time.perf_counter()
            step(overlaps)
            if turn > 0:
                times[name].append(time.perf_counter() - begun)
    if comm.rank == 0:
        cells = (f"{statistics.median(t) * 1e3:>22.1f}" for t in times.values())
        print("row" + "".join(cells), flush=True)


def main() -> None:
    from tests.communicators.transport.mpi.hosts import hosts, missing

    if missing():
        sys.exit(f"networks: {missing()}")
    print(f"{'Gbit/s':>8}" + "".join(f"{name:>22}" for name in WAYS))
    with tempfile.TemporaryDirectory() as name:
        with hosts(2, pathlib.Path(name)) as pair:
            for rate, steps in (("10", 20), ("1", 10), ("0.1", 4)):
                pair.limit(int(float(rate) * 1000))
                done = pair.run(__file__, "--rank", str(steps), timeout=200)
                rows = [s for s in done.stdout.splitlines() if s.startswith("row")]
                assert done.returncode == 0 and rows, done.stdout
                print(f"{rate:>8}{rows[0][3:]}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        play_rank(int(sys.argv[2]))
    else:
        main()
