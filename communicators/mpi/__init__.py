"""Ranks that are processes of an MPI job. MPI starts with the first communicator."""

from __future__ import annotations

import logging
import os
from typing import Any

from renga import _communicators, _core
from renga.communicators import settings
from renga.communicators.mpi import leaving, leftovers
from renga.communicators.mpi.dummy import DummyCommunicator
from renga.communicators.mpi.mpi_communicator import MpiCommunicator, native_mpi

__all__ = ["DummyCommunicator", "MpiCommunicator", "connect"]

# Which process of the job has taken a rank: children see it, others do not.
_TAKEN = "RENGA_RANK_TAKEN"

_LOG = logging.getLogger(__name__)


def connect(
    mpi_comm: Any = None,
    boards: str = "each_node",
    kind: type[MpiCommunicator] = MpiCommunicator,
) -> MpiCommunicator:
    """Joins the ranks of ``mpi_comm``, or all processes of the job, in a communicator.

    Args:
        mpi_comm: a communicator of mpi4py.
        boards: which ranks share memory: ``none``, all of them where they are on
            ``one_node``, or those of ``each_node``.
        kind: the class of the communicator.

    Raises:
        ImportError: there is no MPI.
        RuntimeError: a rank has started this process, which is none itself.
    """
    native = native_mpi()
    _require_own_rank()
    address = 0
    if mpi_comm is not None:
        from mpi4py import MPI

        address = MPI._addressof(mpi_comm)
    transport = native.connect(address, boards)
    comm = kind(
        _communicators.Communicator(transport, settings.timeout(), settings.debug())
    )
    if leaving.watch(native) and comm.intra_rank == 0:
        leftovers.remove_leftovers()
    _share_cores(comm)
    return comm


def _require_own_rank() -> None:
    """Refuses a process that has a rank's environment from its parent.

    As a second process of that rank it would write into the ranks' memory.
    """
    names = ("PMIX_NAMESPACE", "PMIX_RANK")
    if not all(name in os.environ for name in names):
        return
    rank = ":".join(os.environ[name] for name in names)
    taken = os.environ.get(_TAKEN, "")
    if taken.startswith(f"{rank}:") and taken != f"{rank}:{os.getpid()}":
        raise RuntimeError(
            "create_communicator: this process was started by a rank, and is none; "
            "where multiprocessing starts it, the program's own part has to stand "
            'under `if __name__ == "__main__":`'
        )
    os.environ[_TAKEN] = f"{rank}:{os.getpid()}"


def _share_cores(comm: MpiCommunicator) -> None:
    """Gives this rank its share of the node's cores, unless somebody has chosen.

    Threads of several ranks that wait for one core cost far more than they bring.
    A launcher that binds ranks to cores has shared them out already.
    """
    mine = len(os.sched_getaffinity(0))
    if "OMP_NUM_THREADS" in os.environ or mine < (os.cpu_count() or 1):
        return
    threads = max(1, mine // comm.intra_size)
    _core.set_num_threads(threads)
    _LOG.debug("rank %d computes with %d of %d cores", comm.rank, threads, mine)
