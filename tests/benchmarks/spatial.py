"""A stack of convolutions over two ranks of one thread against one of one thread.

``mpiexec -n 2 python tests/benchmarks/spatial.py`` trains four 3 x 3 convolutions of
64 channels on one image of 1024 x 1024 pixels (``--size``), forward, backward and
update, in turn by rank 0 alone, by all ranks, and by independent ranks, each with its
shard as a whole image: what cores that share memory reach without communication. It
prints the times and their ratios.

``--simulate 64`` runs one rank of 1, 2, 4, … 64, in the middle of the image, with the
others simulated, and predicts a step: its processor time and the time of its messages
on a network of 100 Gbit/s, without overlap.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any, Callable

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import simulated
from renga.distributed import create_communicator
from renga.links.parallel import spatial as S


def stack(layer: Callable[..., Any], layers: int, channels: int) -> renga.Sequential:
    model = renga.Sequential()
    for _ in range(layers):
        model.append(layer(channels, channels, 3, 1, 1))
        model.append(F.relu)
    return model


def make_step(model: Any, x: np.ndarray) -> Callable[[], None]:
    optimizer = renga.optimizers.SGD(1e-3).setup(model)

    def step() -> None:
        model.cleargrads()
        loss = F.average(F.square(model(x)))
        loss.backward()
        optimizer.update()

    return step


def predict(args: argparse.Namespace) -> None:
    """Prints a row for each number of ranks."""
    first = 0.0
    print("ranks  computes ms  messages ms  predicted ms  speed-up")
    for ranks in (2**i for i in range(args.simulate.bit_length())):
        comm = simulated.connect(ranks, ranks // 2, latency=5e-6, bandwidth=12.5e9)
        shape = (1, args.channels, args.size // ranks, args.size)
        x = np.random.default_rng(0).standard_normal(shape, np.float32)

        def spatial(*options: Any, comm: Any = comm) -> Any:
            return S.SpatialConvolution2D(comm, *options)

        step, times = make_step(stack(spatial, args.layers, args.channels), x), []
        step()
        before = comm.traffic.seconds + comm.traffic.background_seconds
        for _ in range(args.rounds):
            begin = time.process_time()
            step()
            times.append(time.process_time() - begin)
        after = comm.traffic.seconds + comm.traffic.background_seconds
        computes, messages = statistics.median(times), (after - before) / args.rounds
        first = first or computes
        row = f"{ranks:5}{computes * 1e3:13.1f}{messages * 1e3:13.2f}"
        total = computes + messages
        print(f"{row}{total * 1e3:14.1f}{first / total:10.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--simulate", type=int, help="the largest number of ranks")
    args = parser.parse_args()
    if args.simulate:
        return predict(args)
    comm = create_communicator("mpi")
    shape = (1, args.channels, args.size, args.size)
    x = np.random.default_rng(0).standard_normal(shape, np.float32)

    def spatial(*options: Any) -> Any:
        return S.SpatialConvolution2D(comm, *options)

    alone = make_step(stack(L.Convolution2D, args.layers, args.channels), x)
    own = S.scatter_image(comm, x).array.copy()
    together = make_step(stack(spatial, args.layers, args.channels), own)
    independent = make_step(stack(L.Convolution2D, args.layers, args.channels), own)
    steps = {"alone": alone, "together": together, "independent": independent}
    times: dict[str, list[float]] = {name: [] for name in steps}
    work: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(args.rounds + 1):
        for name, step in steps.items():
            comm.barrier()
            begin, used = time.perf_counter(), time.process_time()
            if name != "alone" or comm.rank == 0:
                step()
            work[name].append(time.process_time() - used)
            comm.barrier()
            times[name].append(time.perf_counter() - begin)
    if comm.rank == 0:
        report({name: values[1:] for name, values in times.items()}, comm.size)
        one, all_ranks, _ = (statistics.median(v[1:]) for v in work.values())
        print(f"processor time of rank 0: {one:.2f} s, {all_ranks:.2f} s", end=", ")
        print(f"{one / all_ranks:.2f} times less (what counts on a busy machine)")


def report(times: dict[str, list[float]], ranks: int) -> None:
    medians = {name: statistics.median(values) * 1e3 for name, values in times.items()}
    print(f"1 rank {medians['alone']:.0f} ms")
    for name, title in (
        ("together", f"{ranks} ranks"),
        ("independent", "independent processes (no communication)"),
    ):
        ratios = sorted(a / b for a, b in zip(times["alone"], times[name]))
        print(f"{title} {medians[name]:.0f} ms, speed-up: median of pairs", end=" ")
        print(f"{statistics.median(ratios):.2f}, all", *(f"{r:.2f}" for r in ratios))


if __name__ == "__main__":
    main()
