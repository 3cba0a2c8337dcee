"""Ranks that are processes of an MPI job. MPI starts with the first communicator."""

from __future__ import annotations

import logging
import os

from renga import _communicators, _core
from renga.communicators import settings
from renga.communicators.transport.mpi import exit_hooks, stale_files
from renga.communicators.transport.mpi.mpi_communicator import (
    DummyMpiCommunicator,
    MpiCommunicator,
    native_mpi,
)
from renga.utils.folders import home

__all__ = ["DummyMpiCommunicator", "MpiCommunicator", "connect"]

# The process that has taken a rank of the job; inherited by its children.
_TAKEN = "RENGA_RANK_TAKEN"

_LOG = logging.getLogger(__name__)


def connect(
    mpi_comm: object = None,
    shares_memory: bool = True,
    kind: type[MpiCommunicator] = MpiCommunicator,
) -> MpiCommunicator:
    """A communicator of the ranks of ``mpi_comm``, or of all processes of the job.

    Args:
        mpi_comm: an mpi4py communicator.
        shares_memory: whether the ranks of a node share memory.
        kind: the class of the communicator.

    Raises:
        ImportError: if there is no MPI.
        RuntimeError: if this process was started by a rank and is not one itself, or
            by srun without PMIx.
    """
    native = native_mpi()
    _require_pmix()
    _require_own_rank()
    os.environ.setdefault("HOME", home())
    address = 0
    if mpi_comm is not None:
        from mpi4py import MPI

        address = MPI._addressof(mpi_comm)
    transport = native.connect(address, shares_memory)
    comm = kind(
        _communicators.Communicator(transport, settings.timeout(), settings.debug())
    )
    if exit_hooks.install(native) and comm.intra_rank == 0:
        stale_files.remove_stale_files()
    _set_num_threads(comm)
    return comm


def _require_pmix() -> None:
    """Raises in one of several tasks of Slurm that do not know of each other.

    Each would be the only rank of a job of its own, and train alone.
    """
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "1")
    knows_others = any(name in os.environ for name in ("PMIX_RANK", "PMI_RANK"))
    if tasks != "1" and not knows_others:
        raise RuntimeError(
            f"create_communicator: expected tasks that srun starts with PMIx, got "
            f"{tasks} without; `srun --mpi=pmix`, or `renga run` in the allocation"
        )


def _require_own_rank() -> None:
    """Raises in a process that has inherited the environment of a rank.

    As a second process of that rank it would write into the ranks' shared memory.
    """
    names = ("PMIX_NAMESPACE", "PMIX_RANK")
    if not all(name in os.environ for name in names):
        return
    rank = ":".join(os.environ[name] for name in names)
    taken = os.environ.get(_TAKEN, "")
    if taken.startswith(f"{rank}:") and taken != f"{rank}:{os.getpid()}":
        raise RuntimeError(
            "create_communicator: this process was started by a rank and is not one; "
            "if multiprocessing started it, the main program has to be "
            'under `if __name__ == "__main__":`'
        )
    os.environ[_TAKEN] = f"{rank}:{os.getpid()}"


def _set_num_threads(comm: MpiCommunicator) -> None:
    """Divides the node's cores among its ranks, unless the user has chosen.

    Threads of several ranks that compete for a core cost more than they gain. If the
    launcher binds ranks to cores, nothing is left to do.
    """
    cores = len(os.sched_getaffinity(0))
    if "OMP_NUM_THREADS" in os.environ or cores < (os.cpu_count() or 1):
        return
    threads = max(1, cores // comm.intra_size)
    _core.set_num_threads(threads)
    _LOG.debug("rank %d computes with %d of %d cores", comm.rank, threads, cores)
