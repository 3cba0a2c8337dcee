"""Examines whether ranks can communicate here, and how fast.

It starts its ranks through mpiexec; under mpiexec or srun it examines that job.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import Any

from renga._runtime import runtime_info
from renga.communicators import Communicator, create_communicator, doctor
from renga.launch import mpiexec_command, mpiexec_environment
from renga.launch.slurm import is_rank


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument("--ranks", type=int, default=2, help="processes to start")
    parser.add_argument("--large", action="store_true", help="send 2.5 GiB too")


def main(chosen: argparse.Namespace) -> int:
    """Prints a report; returns 0 if nothing failed."""
    if not is_rank():
        return _start(chosen.ranks, chosen.large)
    os.environ.setdefault("RENGA_TIMEOUT", "60")
    comm = create_communicator("mpi")
    write = print if comm.rank == 0 else _nothing
    return 0 if _report(comm, chosen.large, write) else 1


def _start(ranks: int, large: bool) -> int:
    try:
        command = [*mpiexec_command(ranks), sys.executable, "-m", "renga", "doctor"]
    except ImportError as error:
        print(f"renga doctor: {error}", file=sys.stderr)
        return 2
    return subprocess.run(
        [*command, *["--large"] * large],
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
