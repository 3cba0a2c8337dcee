"""Becomes a program after binding itself to the cores of this rank.

``python rank.py PROGRAM ARGUMENTS…``. It imports nothing of renga: threads that start
with it would be bound to all cores.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping


def cores_of(local_rank: int, local_size: int, cores: list[int]) -> list[int]:
    """The part of ``cores`` that a rank computes on; all if there are too few.

    ``cores`` are ordered such that neighbours share caches. Every rank of the machine
    gets the same number of them.
    """
    share = len(cores) // local_size
    if share == 0:
        return cores
    return cores[local_rank * share : (local_rank + 1) * share]


def usable_cores() -> list[int]:
    """The logical CPUs this process may use; those of one core are neighbours."""
    return sorted(os.sched_getaffinity(0), key=_position)


def _position(cpu: int) -> tuple[int, int, int]:
    folder = f"/sys/devices/system/cpu/cpu{cpu}/topology"
    try:
        with open(f"{folder}/physical_package_id") as package:
            with open(f"{folder}/core_id") as core:
                return int(package.read()), int(core.read()), cpu
    except OSError:  # not every container shows it
        return 0, cpu, cpu


def slurm_threads(environ: Mapping[str, str], cores: int) -> int:
    """How many threads a task of Slurm computes with; it binds its tasks itself.

    Args:
        environ: of the task.
        cores: the logical CPUs it may use.
    """
    if "SLURM_CPUS_PER_TASK" in environ:
        return int(environ["SLURM_CPUS_PER_TASK"])
    tasks = tasks_of_node(
        environ.get("SLURM_STEP_TASKS_PER_NODE", "1"),
        int(environ.get("SLURM_NODEID", "0")),
    )
    on_node = int(environ.get("SLURM_CPUS_ON_NODE", cores))
    return max(1, min(cores, on_node // tasks))


def tasks_of_node(text: str, node: int) -> int:
    """What Slurm's ``2(x3),1`` says of a node: 2 of the first three, 1 of the last."""
    counts: list[int] = []
    for part in text.split(","):
        count, _, times = part.rstrip(")").partition("(x")
        counts += [int(count)] * int(times or 1)
    return counts[node]


def main(command: list[str]) -> None:
    """Binds this process and replaces it by ``command``."""
    cores = usable_cores()
    if "OMPI_COMM_WORLD_LOCAL_RANK" in os.environ:
        local_rank = int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
        local_size = int(os.environ["OMPI_COMM_WORLD_LOCAL_SIZE"])
        shared = len(cores) < local_size
        cores = cores_of(local_rank, local_size, cores)
        os.sched_setaffinity(0, cores)
        threads = 1 if shared else len(cores)
    else:
        threads = slurm_threads(os.environ, len(cores))
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
