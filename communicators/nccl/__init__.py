"""Communication between GPUs through NCCL; without it, through MPI."""

from __future__ import annotations

import logging
import pathlib

from renga.backends.cuda_loader import nccl_unavailable_reason as unavailable_reason
from renga.communicators.nccl.nccl_communicator import NcclCommunicator
from renga.communicators.transport import mpi

__all__ = ["NcclCommunicator", "connect", "unavailable_reason"]

_LOG = logging.getLogger(__name__)


def connect(mpi_comm: object = None) -> mpi.MpiCommunicator:
    """A communicator that uses NCCL for GPU arrays and MPI for everything else.

    If NCCL is missing on a machine with a GPU, a warning says so, and GPU arrays go
    through the host's memory and MPI.
    """
    comm = mpi.connect(mpi_comm, kind=NcclCommunicator)
    assert isinstance(comm, NcclCommunicator)
    # All ranks have to decide alike.
    reasons = [text for text in comm.allgather_obj(unavailable_reason()) if text]
    comm.has_nccl = not reasons
    if reasons and comm.rank == 0:
        level = logging.WARNING if _has_gpu() else logging.DEBUG
        _LOG.log(level, "pure_nccl: %s; arrays are sent through MPI", reasons[0])
    return comm


def _has_gpu() -> bool:
    """Whether NVIDIA's driver has found a GPU."""
    return any(pathlib.Path("/dev").glob("nvidia[0-9]*"))
