"""The command line of Open MPI's mpiexec, and the environment it needs."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
from collections.abc import Iterable, Mapping

from renga.utils.folders import home

# Ranks on other hosts get the variables of this process's environment that begin with
# these letters.
_EXPORTED = ("RENGA_", "OMP_", "PYTHON", "TERM")


def mpiexec_command(ranks: int, hosts: Mapping[str, int] | None = None) -> list[str]:
    """The command line that starts ``ranks`` processes, before the program's own.

    Args:
        ranks: their number.
        hosts: how many of them each host takes, in this order; all are started on
            this one by default.

    Raises:
        ImportError: there is no mpiexec.
    """
    next_to_python = pathlib.Path(sys.executable).with_name("mpiexec")
    found = str(next_to_python) if next_to_python.exists() else shutil.which("mpiexec")
    if found is None:
        text = "launch: there is no mpiexec here; `pip install 'renga[mpi]'`"
        raise ImportError(text)
    command = [found, "-n", str(ranks), "--bind-to", "none"]
    if not os.isatty(0):  # mpiexec would send it to rank 0, but never its end
        command += ["--stdin", "none"]
    if hosts:
        slots = ",".join(f"{host}:{count}" for host, count in hosts.items())
        command += ["--host", slots]
    return command


def exports(names: Iterable[str]) -> list[str]:
    """Options by which mpiexec hands variables on to other hosts."""
    exported = sorted(name for name in names if name.startswith(_EXPORTED))
    return [word for name in exported for word in ("-x", name)]


def mpiexec_environment(ranks: int) -> dict[str, str]:
    """This process's environment, with Open MPI's settings for a small machine.

    They allow running as root, more ranks than cores, and sharing of cores. Without
    its one-sided transfers through libfabric, which renga does not use, MPI is
    initialized a second sooner: that component sleeps when it finds no network. MPI
    also needs a home folder.
    """
    cores = len(os.sched_getaffinity(0))
    defaults = {
        "HOME": home(),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_btl": "^ofi",
        "OMP_NUM_THREADS": str(max(1, cores // ranks)),
    }
    return {**defaults, **os.environ}
