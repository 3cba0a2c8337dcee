"""Data-parallel training on two hosts with each kind of compression.

    python -m tests.benchmarks.hosts.compression  # as root: makes the hosts
    python -m tests.benchmarks.hosts.compression --rates 0.1 --ways none TopK
    python -m tests.benchmarks.hosts.compression --rank ...  # what runs on each host

The network, the model and the batches are those of hosts/data_parallel.py: an MLP with
9.0 MB of gradients, 1024 samples on each rank. Prints, for each rate in Gbit/s and each
way, the median, least and greatest milliseconds of a step, its time beyond that of a
step alone, and the megabytes that left rank 0's cable. The ways take turns. With --peer
"PYTHON comm_hooks_torch.py", a program that does the same in PyTorch runs after each
rate, which it gets as --rates, and its lines are printed.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

STEPS = {"10": 30, "1": 8, "0.1": 4}
# Until it is known whether steps overlap (OverlapTrial).
WARM_UP = 8


def compressors():
    from renga.distributed import compression

    return {
        "alone": None,
        "none": None,
        "after": None,
        "Cast": compression.Cast("bfloat16"),
        "QSGD": compression.QSGD(bits=4),
        "TernGrad": compression.TernGrad(),
        "OneBit": compression.OneBit(),
        "TopK": compression.TopK(0.01),
        "RandomK": compression.RandomK(0.01),
        "DGC": compression.DGC(0.001),
        "PowerSGD": compression.PowerSGD(rank=4),
        "Auto": compression.Auto(),
    }


class Way:
    """A model that is trained in one way: step() is one update."""

    def __init__(self, name, comm, compression):
        import renga
        import renga.functions as F
        import renga.links as L
        from renga.distributed import create_multi_node_optimizer

        self.name = name
        self.model = renga.Sequential()
        for before in [784] + [512] * 7:
            self.model.append(L.Linear(before, 512))
            self.model.append(F.relu)
        self.model.append(L.Linear(512, 10))
        optimizer = renga.optimizers.MomentumSGD(0.01).setup(self.model)
        self.optimizer = create_multi_node_optimizer(
            optimizer, comm, compression=compression
        )
        self.loss = lambda x, t: F.softmax_cross_entropy(self.model(x), t)

    def step(self, x, t):
        if self.name in ("alone", "after"):
            self.model.cleargrads()
            self.loss(x, t).backward()
            alone = self.name == "alone"
            (self.optimizer.actual_optimizer if alone else self.optimizer).update()
        else:
            self.optimizer.update(self.loss, x, t)


def sent_bytes():
    lines = pathlib.Path("/proc/self/net/dev").read_text().splitlines()
    return sum(int(s.split(":")[1].split()[8]) for s in lines[2:] if " lo:" not in s)


def play_rank(steps, names):
    """Trains in all ways, and prints one line for each on rank 0."""
    from renga.distributed import create_communicator

    comm = create_communicator("mpi")
    ways = [Way(name, comm, compressors()[name]) for name in names]
    random = np.random.RandomState(comm.rank)
    x = random.normal(size=(1024, 784)).astype("float32")
    t = random.randint(0, 10, 1024).astype("int32")
    times = {name: [] for name in names}
    sent = {name: [] for name in names}
    for turn in range(WARM_UP + steps):
        for way in ways:
            comm.barrier()
            before, begin = sent_bytes(), time.perf_counter()
            way.step(x, t)
            if turn >= WARM_UP:
                times[way.name].append((time.perf_counter() - begin) * 1e3)
                sent[way.name].append((sent_bytes() - before) / 1e6)
    if comm.rank > 0:
        return
    alone = statistics.median(times["alone"]) if "alone" in times else 0.0
    for way in ways:
        ms = times[way.name]
        row = [statistics.median(ms), min(ms), max(ms), statistics.median(ms) - alone]
        hook = way.optimizer._bucket_hook
        chosen = getattr(getattr(hook, "compressor", None), "choice", None)
        print("row" + json.dumps([way.name, row, statistics.median(sent[way.name])]))
        if chosen is not None:
            print("choice" + repr(chosen))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rates", nargs="+", default=list(STEPS))
    parser.add_argument("--ways", nargs="+", default=list(compressors()))
    parser.add_argument("--steps", type=int)
    parser.add_argument("--peer", default="", help="a command")
    parser.add_argument("--rank", action="store_true")
    arguments = parser.parse_args()
    if arguments.rank:
        play_rank(arguments.steps, arguments.ways)
        return
    from tests.communicators.transport.mpi.hosts import hosts, missing

    if missing():
        sys.exit(f"networks: {missing()}")
    head = ("way", "median", "least", "greatest", "beyond alone", "MB sent")
    print(f"{'Gbit/s':>8}" + "".join(f"{name:>14}" for name in head))
    with tempfile.TemporaryDirectory() as name:
        with hosts(2, pathlib.Path(name)) as pair:
            for rate in arguments.rates:
                pair.limit(int(float(rate) * 1000))
                steps = str(arguments.steps or STEPS.get(rate, 8))
                options = ["--rank", "--steps", steps, "--ways", *arguments.ways]
                done = pair.run(__file__, *options, timeout=600)
                report(rate, done)
                if arguments.peer:
                    command = [*shlex.split(arguments.peer), "--rates", rate]
                    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def report(rate, done):
    lines = done.stdout.splitlines()
    rows = [json.loads(s[3:]) for s in lines if s.startswith("row")]
    assert done.returncode == 0 and rows, done.stdout
    for way, milliseconds, sent in rows:
        cells = "".join(f"{ms:>14.1f}" for ms in milliseconds)
        print(f"{rate:>8}{way:>14}{cells}{sent:>14.3f}")
    print("".join(s.replace("choice", "Auto: ") + "\n" for s in lines if "choice" in s))


if __name__ == "__main__":
    main()
