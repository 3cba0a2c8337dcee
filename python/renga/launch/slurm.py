"""Ranks that Slurm starts, by ``srun`` and PMIx instead of mpiexec."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping


def is_rank(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is a rank, started by mpiexec or by srun with PMIx."""
    by_srun = "PMIX_RANK" in environ and "SLURM_STEP_ID" in environ
    return "OMPI_COMM_WORLD_RANK" in environ or by_srun


def starts_ranks() -> bool:
    """Whether this is an allocation of Slurm whose srun speaks PMIx."""
    if "SLURM_JOB_ID" not in os.environ or shutil.which("srun") is None:
        return False
    listed = subprocess.run(
        ["srun", "--mpi=list"], capture_output=True, text=True, check=False
    )
    return "pmix" in listed.stdout + listed.stderr


def ranks_of_allocation() -> int | None:
    """For how many ranks the allocation was made; None if that was not said."""
    tasks = os.environ.get("SLURM_NTASKS", "")
    return int(tasks) if tasks.isdigit() else None


def srun_command(ranks: int, hosts: Mapping[str, int]) -> list[str]:
    """The command line that starts ``ranks`` processes, before the program's own.

    Steps may overlap: one stands by while another runs.

    Args:
        ranks: their number.
        hosts: the hosts of the allocation that take part, filled one after the other
            with as many ranks as the largest number says; all if there are none.
    """
    command = ["srun", "--mpi=pmix", "--overlap", "--kill-on-bad-exit=1"]
    command += [f"--ntasks={ranks}"]
    if hosts:
        command += [f"--nodelist={','.join(hosts)}", f"--nodes={len(hosts)}"]
        most = max(hosts.values())
        command += [f"--ntasks-per-node={most}", "--distribution=block,Pack"]
    return command
