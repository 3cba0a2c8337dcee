"""Communicators: groups of ranks, threads or processes, that communicate."""

from __future__ import annotations

from typing import Any

from renga.communicators import local, nccl, simulated
from renga.communicators.communicator import Communicator
from renga.communicators.communicator_base import CommunicatorBase
from renga.communicators.failure import RankFailed
from renga.communicators.messages.status import ANY_SOURCE, ANY_TAG, Status
from renga.communicators.transport import mpi
from renga.communicators.work import Work

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "Communicator",
    "CommunicatorBase",
    "NativeCommunicator",
    "RankFailed",
    "Status",
    "Work",
    "create_communicator",
    "local",
]

# Another name of the class, which tells it from ChainerMN's base class.
NativeCommunicator = Communicator

# They stood for different algorithms.
_CHAINERMNS = "naive flat hierarchical two_dimensional single_node non_cuda_aware dummy"
_NAMES = ["local", "simulated", "pure_nccl", "mpi", "messages", *_CHAINERMNS.split()]


def create_communicator(
    communicator_name: str = "pure_nccl", mpi_comm: object = None, **kwargs: Any
) -> Communicator:
    """A communicator of this process with the others of its job.

    Args:
        communicator_name: ``mpi`` or a name of ChainerMN's for processes,
            ``messages`` for processes that share no memory;
            ``local`` for ranks that are threads; ``simulated`` for one of many ranks
            that do not exist.
        mpi_comm: an mpi4py communicator of the ranks that take part; by default all
            processes of the job.
        kwargs: settings (see :meth:`Communicator.set_config`); for
            ``simulated`` the arguments of
            :class:`renga.communicators.simulated.Machine`.

    Raises:
        ValueError: if the name or an option is unknown, or there are several nodes
            for ``single_node``.
        ImportError: if there is no MPI.
    """
    if communicator_name not in _NAMES:
        raise ValueError(
            f'Unrecognized communicator: "{communicator_name}"; '
            f"expected one of {', '.join(_NAMES)}"
        )
    if communicator_name == "simulated":
        return simulated.connect(**kwargs)
    comm = _connect(communicator_name, mpi_comm)
    for name, value in kwargs.items():
        comm.set_config(name, value=value)
    return comm


def _connect(name: str, mpi_comm: Any) -> Communicator:
    if name == "local":
        return local.current()
    if name == "pure_nccl":
        return nccl.connect(mpi_comm)
    kind = mpi.DummyMpiCommunicator if name == "dummy" else mpi.MpiCommunicator
    comm = mpi.connect(mpi_comm, name != "messages", kind)
    if name == "single_node" and comm.inter_size > 1:
        raise ValueError(
            f"single_node: expected ranks on one node, got {comm.inter_size} nodes"
        )
    return comm
