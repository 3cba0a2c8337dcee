"""Becomes a program after binding itself to the cores of this rank.

``python rank.py PROGRAM ARGUMENTS…``. It imports nothing of renga: threads that start
with it would be bound to all cores.
"""

from __future__ import annotations

import os
import sys


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


def main(command: list[str]) -> None:
    """Binds this process and replaces it by ``command``."""
    local_rank = int(os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0"))
    local_size = int(os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", "1"))
    os.sched_setaffinity(0, cores_of(local_rank, local_size, usable_cores()))
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
