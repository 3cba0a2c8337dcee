"""Communicators: groups of ranks, be they threads or processes, that act together."""

from __future__ import annotations

from typing import Any

from renga.communicators import local
from renga.communicators.communicator import Communicator
from renga.communicators.communicator_base import CommunicatorBase
from renga.communicators.failure import RankFailed
from renga.communicators.work import Work

__all__ = [
    "Communicator",
    "CommunicatorBase",
    "RankFailed",
    "Work",
    "create_communicator",
    "local",
]

# Whether ranks of one node share memory. "naive" is the plain way for comparison;
# the others were different ways to one result, of which the best is taken.
_MPI_KINDS = {
    "mpi": True,
    "naive": False,
    "flat": True,
    "hierarchical": True,
    "two_dimensional": True,
    "single_node": True,
    "non_cuda_aware": True,
    "pure_nccl": True,
}


def create_communicator(
    communicator_name: str = "pure_nccl", mpi_comm: Any = None, **kwargs: Any
) -> Communicator:
    """A communicator of this process with the others of its job.

    Args:
        communicator_name: ``mpi`` or a name of ChainerMN's for processes;
            ``local`` for ranks that are threads.
        mpi_comm: a communicator of mpi4py, whose ranks take part.
        kwargs: ``allreduce_grad_dtype``, in which gradients travel, and
            ``batched_copy``.

    Raises:
        ValueError: unknown name or option, or several nodes for ``single_node``.
        ImportError: there is no MPI.
    """
    if communicator_name == "local":
        comm = local.current()
    elif communicator_name in _MPI_KINDS:
        from renga.communicators import mpi

        comm = mpi.connect(mpi_comm, _MPI_KINDS[communicator_name])
    else:
        known = ", ".join(["local", *_MPI_KINDS])
        raise ValueError(
            f'Unrecognized communicator: "{communicator_name}"; expected one of {known}'
        )
    if communicator_name == "single_node" and comm.inter_size > 1:
        raise ValueError(
            f"single_node: expected ranks on one node, got {comm.inter_size} nodes"
        )
    for name, value in kwargs.items():
        comm.set_config(name, value=value)
    return comm
