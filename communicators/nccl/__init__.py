"""Ranks that each have a GPU, through NCCL. Without it MPI does the same."""

from __future__ import annotations

import importlib
import logging
from typing import Any

from renga.communicators import mpi
from renga.communicators.nccl.nccl_communicator import NcclCommunicator

_LOG = logging.getLogger(__name__)


def connect(mpi_comm: Any = None) -> mpi.MpiCommunicator:
    """A communicator that reduces arrays of GPUs by NCCL, all others through MPI.

    Where NCCL or a GPU is missing, one line says so and everything goes through MPI.
    """
    comm = mpi.connect(mpi_comm, kind=NcclCommunicator)
    # Ranks that differ in this would wait for each other for ever.
    missing = [text for text in comm.allgather_obj(what_is_missing()) if text]
    if missing and comm.rank == 0:
        _LOG.warning("pure_nccl: %s; arrays travel through MPI", missing[0])
    return comm


def what_is_missing() -> str:
    """Why NCCL cannot be used here; empty where it can."""
    try:
        native = importlib.import_module("renga._communicators_nccl")
    except ImportError:
        return "renga was built without RENGA_NCCL"
    return str(native.what_is_missing())
