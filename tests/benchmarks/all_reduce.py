"""All-reduce in place of float32 on two ranks of one node, beside MPI and gloo.

    python tests/benchmarks/all_reduce.py --peer PYTHON_WITH_TORCH

Prints, for each size, the microseconds of rank 0 for renga on ordinary arrays and on
arrays in a window; for Open MPI called from C, if there is an mpicc; for gloo, if
``--peer`` names a Python that has PyTorch; and the speedup of the slower of ours over
those two. The programs take turns, and each figure is the least of the turns' medians:
other load on the machine affects all of them alike.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable

SIZES = [4 << 10 << (2 * i) for i in range(9)]
ROUNDS = [400 if size <= 1 << 20 else 60 if size <= 16 << 20 else 7 for size in SIZES]
TURNS = 4


def median_us(run: Callable[[], Any], barrier: Callable[[], Any], rounds: int) -> float:
    """The median time of ``run()`` after a barrier, in microseconds."""
    times = []
    for i in range(rounds + 3):
        barrier()
        start = time.perf_counter()
        run()
        if i >= 3:
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def run_renga_rank() -> None:
    import numpy as np

    from renga.communicators import create_communicator

    comm = create_communicator("mpi")
    arrays = {"ordinary": np.zeros(SIZES[-1] // 4, np.float32)}
    arrays["window"] = comm.window(SIZES[-1] // 4)
    result: dict[str, list[float]] = {}
    for name, array in arrays.items():
        array[:] = 0
        result[name] = []
        for size, rounds in zip(SIZES, ROUNDS):
            x = array[: size // 4]
            run = lambda x=x: comm.all_reduce(x, out=x)  # noqa: E731
            result[name].append(median_us(run, comm.barrier, rounds))
    if comm.rank == 0:
        print("result", json.dumps(result), flush=True)


def run_gloo_rank(rank: int, rendezvous_file: str) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    init_method = f"file://{rendezvous_file}"
    dist.init_process_group("gloo", init_method=init_method, rank=rank, world_size=2)
    result = []
    for size, rounds in zip(SIZES, ROUNDS):
        x = torch.zeros(size // 4)
        run = lambda x=x: dist.all_reduce(x)  # noqa: E731
        result.append(median_us(run, dist.barrier, min(rounds, 100)))
    dist.destroy_process_group()
    if rank == 0:
        print("result", json.dumps({"gloo": result}), flush=True)


def run_renga() -> dict[str, list[float]]:
    return _result(_output_of_ranks([sys.executable, __file__, "--rank"]))


def run_mpi(program: str) -> dict[str, list[float]]:
    pairs = [str(n) for pair in zip(SIZES, ROUNDS) for n in pair]
    lines = _output_of_ranks([program, *pairs]).split()
    return {"Open MPI": [float(line) for line in lines[-len(SIZES) :]]}


def run_gloo(python: str) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        command = [
            python,
            __file__,
            "--rendezvous-file",
            f"{folder}/rendezvous",
            "--gloo",
        ]
        ranks = [
            subprocess.Popen([*command, str(r)], stdout=subprocess.PIPE, text=True)
            for r in range(2)
        ]
        outputs = [rank.communicate(timeout=100)[0] for rank in ranks]
    return _result(outputs[0])


def _output_of_ranks(command: list[str]) -> str:
    from renga.launch import mpiexec_command, mpiexec_environment

    return subprocess.run(
        [*mpiexec_command(2), *command],
        env={**mpiexec_environment(2), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=100,
    ).stdout


def _result(output: str) -> dict[str, list[float]]:
    line = next(s for s in output.splitlines() if s.startswith("result "))
    return json.loads(line[len("result ") :])


def compare(peer: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        programs: list[Callable[[], dict[str, list[float]]]] = [run_renga]
        python_folder = pathlib.Path(sys.executable).parent
        path = os.pathsep.join([str(python_folder), os.environ["PATH"]])
        if mpicc := shutil.which("mpicc", path=path):
            program = f"{folder}/all_reduce"
            source = str(pathlib.Path(__file__).with_suffix(".c"))
            subprocess.run([mpicc, "-O3", source, "-o", program], check=True)
            programs.append(lambda: run_mpi(program))
        if peer:
            programs.append(lambda: run_gloo(peer))
        times: dict[str, list[float]] = {}
        for _ in range(TURNS):
            for run in programs:
                for name, turn in run().items():
                    best = times.setdefault(name, turn)
                    times[name] = [min(pair) for pair in zip(best, turn)]
    others = [name for name in times if name not in ("ordinary", "window")]
    print(f"{'bytes':>10}" + "".join(f"{name:>12}" for name in times), end="")
    print("".join(f"{f'/ {name}':>12}" for name in others))
    for i, size in enumerate(SIZES):
        cells = "".join(f"{column[i]:>12.1f}" for column in times.values())
        ours = max(times["ordinary"][i], times["window"][i])
        ratios = "".join(f"{times[name][i] / ours:>12.2f}" for name in others)
        print(f"{size:>10}{cells}{ratios}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python that has PyTorch")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--gloo", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--rendezvous-file", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        run_renga_rank()
    elif options.gloo is not None:
        run_gloo_rank(options.gloo, options.rendezvous_file)
    else:
        compare(options.peer)


if __name__ == "__main__":
    main()
