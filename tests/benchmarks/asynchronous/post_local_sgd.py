"""Milliseconds of a step of post-local SGD on two hosts, of renga and PyTorch.

    python -m tests.benchmarks.asynchronous.post_local_sgd --peer PYTHON  # as root
    python -m tests.benchmarks.asynchronous.post_local_sgd --gbits 1 0.1

The hosts are network namespaces (tests/communicators/transport/mpi/hosts.py). An MLP
(784, eight times 512, 10; 1024 samples on each rank, 9.0 MB) is trained synchronously
and with averages of the parameters after every 16 updates (in PyTorch by its
PostLocalSGDOptimizer, if PYTHON can import torch), and by DiLoCo after every 100.
Prints the mean of as many steps as there are between a few averages, that of steps
without messages in the same processes before, and the difference.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
import time

import numpy as np

EVERY = {"synchronous": 1, "local SGD, H=16": 16, "DiLoCo, H=100": 100}
AVERAGES, LEAST_STEPS, STEPS_ALONE = 3, 10, 30
RENDEZVOUS = "tcp://10.199.0.1:29501"  # the first host


def samples(rank):
    random = np.random.RandomState(rank)
    x = random.normal(size=(1024, 784)).astype("float32")
    return x, random.randint(0, 10, 1024)


def mean_of_methods_steps(step, every):
    """Milliseconds; the steps to the first average are not counted."""
    return mean_of_steps(step, every, max(AVERAGES * every, LEAST_STEPS))


def mean_of_steps(step, first, steps):
    """Milliseconds; so many first steps are not counted."""
    for _ in range(first):
        step()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - begin) / steps * 1e3


def play_renga(name):
    import renga
    import renga.functions as F
    import renga.links as L
    from renga.distributed import create_communicator, create_multi_node_optimizer
    from renga.distributed.asynchronous import create_local_sgd_optimizer
    from renga.optimizers import MomentumSGD, NesterovAG

    comm = create_communicator("mpi")
    layers = [f for n in [784] + [512] * 7 for f in (L.Linear(n, 512), F.relu)]
    model = L.Classifier(renga.Sequential(*layers, L.Linear(512, 10)))
    x, t = samples(comm.rank)
    t = t.astype("int32")
    optimizer = MomentumSGD(0.01).setup(model)
    alone = mean_of_steps(lambda: optimizer.update(model, x, t), 5, STEPS_ALONE)
    if name == "synchronous":
        optimizer = create_multi_node_optimizer(optimizer, comm)
    else:
        outer = NesterovAG(0.7, 0.9) if name.startswith("DiLoCo") else None
        optimizer = create_local_sgd_optimizer(
            optimizer, comm, EVERY[name], outer=outer
        )
    found = mean_of_methods_steps(lambda: optimizer.update(model, x, t), EVERY[name])
    if comm.rank == 0:
        print("result", found, alone, flush=True)


def play_torch(name):
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as hook
    from torch.distributed.algorithms.model_averaging import averagers
    from torch.distributed.optim import PostLocalSGDOptimizer

    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    dist.init_process_group("gloo", RENDEZVOUS, rank=rank, world_size=2)
    layers = []
    for n in [784] + [512] * 7:
        layers += [torch.nn.Linear(n, 512), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(512, 10))
    x, t = map(torch.from_numpy, samples(rank))

    def step(model, optimizer):
        optimizer.zero_grad()
        F.cross_entropy(model(x), t).backward()
        optimizer.step()

    plain = torch.optim.SGD(network.parameters(), 0.01, momentum=0.9)
    alone = mean_of_steps(lambda: step(network, plain), 5, STEPS_ALONE)
    model = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    if name != "synchronous":
        state = hook.PostLocalSGDState(
            None, None, 0, post_local_gradient_allreduce=False
        )
        model.register_comm_hook(state, hook.post_localSGD_hook)
        averager = averagers.PeriodicModelAverager(EVERY[name])
        optimizer = PostLocalSGDOptimizer(optimizer, averager)
    found = mean_of_methods_steps(lambda: step(model, optimizer), EVERY[name])
    if rank == 0:
        print("result", found, alone, flush=True)
    dist.barrier()
    os._exit(0)  # gloo's threads outlive the group


def play_elsewhere(python, name):
    """Becomes a process of another Python, which has packages of its own."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["GLOO_SOCKET_IFNAME"] = "eth0"
    os.execve(python, [python, __file__, "--torch", name], environment)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gbits", nargs="+", type=float, default=[0.1])
    parser.add_argument("--peer", help="a Python that has torch")
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    parser.add_argument("--torch", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.torch:
        return play_torch(arguments.torch)
    if arguments.rank and arguments.peer:
        return play_elsewhere(arguments.peer, arguments.rank)
    if arguments.rank:
        return play_renga(arguments.rank)

    from tests.communicators.transport.mpi.hosts import hosts, missing

    if missing():
        sys.exit(f"networks: {missing()}")
    runs = [("renga", name, []) for name in EVERY]
    if arguments.peer:
        peer = ["--peer", arguments.peer]
        runs += [("torch", name, peer) for name in EVERY if "DiLoCo" not in name]
    names = "".join(f"{name:>9}" for name in ("step", "alone", "more"))
    print(f"{'Gbit/s':>8}{'':>8}{'milliseconds of':>18}{names}")
    with tempfile.TemporaryDirectory() as folder:
        with hosts(2, pathlib.Path(folder)) as pair:
            for gbits in arguments.gbits:
                pair.limit(round(gbits * 1000))
                for library, name, options in runs:
                    done = pair.run(__file__, "--rank", name, *options, timeout=300)
                    found = [s for s in done.stdout.splitlines() if "result" in s]
                    assert found, done.stdout
                    step, alone = map(float, found[0].split()[-2:])
                    numbers = f"{step:>9.1f}{alone:>9.1f}{step - alone:>9.1f}"
                    print(f"{gbits:>8g}{library:>8}{name:>18}{numbers}", flush=True)


if __name__ == "__main__":
    main()
