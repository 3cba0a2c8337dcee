"""Ranks that are processes of an MPI job. MPI starts with the first communicator."""

from __future__ import annotations

import logging
import os
from typing import Any

from renga import _communicators, _core
from renga.communicators import settings
from renga.communicators.mpi import leaving
from renga.communicators.mpi.dummy import DummyCommunicator
from renga.communicators.mpi.mpi_communicator import MpiCommunicator, native_mpi

__all__ = ["DummyCommunicator", "MpiCommunicator", "connect"]

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
    """
    native = native_mpi()
    address = 0
    if mpi_comm is not None:
        from mpi4py import MPI

        address = MPI._addressof(mpi_comm)
    transport = native.connect(address, boards)
    comm = kind(
        _communicators.Communicator(transport, settings.timeout(), settings.debug())
    )
    leaving.watch(native)
    _share_cores(comm)
    return comm


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
