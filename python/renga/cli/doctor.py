"""Examines whether ranks can communicate here, and how fast.

It starts its ranks through mpiexec; under mpiexec or srun it examines that job.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from renga import planning
from renga._runtime import runtime_info
from renga.communicators import Communicator, create_communicator, doctor
from renga.launch import mpiexec_command, mpiexec_environment
from renga.launch.slurm import is_rank
from renga.parallel.plan.device import measured_device


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument("--ranks", type=int, default=2, help="processes to start")
    parser.add_argument("--large", action="store_true", help="send 2.5 GiB too")
    parser.add_argument("--write", metavar="FILE", help="describe it for renga plan")


def main(chosen: argparse.Namespace) -> int:
    """Prints a report; returns 0 if nothing failed."""
    if not is_rank():
        return _start(chosen)
    os.environ.setdefault("RENGA_TIMEOUT", "60")
    comm = create_communicator("mpi")
    write = print if comm.rank == 0 else _nothing
    is_healthy = _report(comm, chosen.large, write)
    if chosen.write and is_healthy:
        _describe(comm, chosen.write)
    elif chosen.write:
        write(f"\n{chosen.write} is not written, as a check failed")
    return 0 if is_healthy else 1


def _describe(comm: Communicator, path: str) -> None:
    """Measures the network and the ranks, and writes them for ``renga plan``."""
    device, stragglers = measured_device(comm)
    cluster = planning.Cluster.of(comm).without_ranks
    cluster = dataclasses.replace(
        cluster, overlaps=True, device=device, stragglers=stragglers
    )
    if comm.rank == 0:
        cluster.save(path)
        print(f"\nwritten to {path}: {cluster}")


def _start(chosen: argparse.Namespace) -> int:
    ranks, path = chosen.ranks, chosen.write
    wrong = ""
    if ranks < 1:
        wrong = f"a rank or more, got {ranks}"
    elif path is not None and (Path(path).is_dir() or not Path(path).parent.is_dir()):
        wrong = f"a file to write in a folder that exists, got {path!r}"
    if wrong:
        print(f"renga doctor: expected {wrong}", file=sys.stderr)
        return 2
    try:
        command = [*mpiexec_command(ranks), sys.executable, "-m", "renga", "doctor"]
    except ImportError as error:
        print(f"renga doctor: {error}", file=sys.stderr)
        return 2
    return subprocess.run(
        [*command, *["--large"] * chosen.large, *(["--write", path] if path else [])],
        env=mpiexec_environment(ranks),
        stdin=subprocess.DEVNULL,
        check=False,
    ).returncode


def _nothing(*texts: str, flush: bool = False) -> None:
    pass


def _report(comm: Communicator, large: bool, write: Any) -> bool:
    healthy = True
    as_it_should_be, unit = runtime_info.tiles()
    write(f"{'tiles':16}{'ok' if as_it_should_be else 'warning':9}{unit}", flush=True)
    for finding in doctor.examine(comm, large):
        healthy = healthy and finding.verdict != "FAILED"
        write(f"{finding.name:16}{finding.verdict:9}{finding.text}", flush=True)
    if not healthy or comm.size == 1:
        return healthy
    write("\nmessages      latency    bandwidth")
    for peer, seconds, speed in doctor.links(comm):
        write(
            f"0 - {peer:<6}{seconds * 1e6:8.1f} us{speed / 1e9:8.2f} GB/s", flush=True
        )
    write("\nall_reduce in us; * is the fastest by the model of the network")
    for i, (size, times, best) in enumerate(doctor.algorithms(comm)):
        if i == 0:
            write(f"{'bytes':>10}" + "".join(f"{name:>20}" for name in times))
        cells = (
            f"{seconds * 1e6:.0f}{'*' if name == best else ' '}"
            for name, seconds in times.items()
        )
        write(f"{size:>10}" + "".join(f"{cell:>20}" for cell in cells), flush=True)
    return healthy
