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

# Which ranks of a kind share memory. ChainerMN's kinds were different ways to one
# result; here each differs in nothing but this.
_BOARDS = {
    "mpi": "each_node",
    "naive": "none",
    "flat": "one_node",
    "hierarchical": "each_node",
    "two_dimensional": "each_node",
    "single_node": "one_node",
    "non_cuda_aware": "each_node",
    "dummy": "each_node",
}
_KINDS = ["local", "simulated", "pure_nccl", *_BOARDS]


def create_communicator(
    communicator_name: str = "pure_nccl", mpi_comm: Any = None, **kwargs: Any
) -> Communicator:
    """A communicator of this process with the others of its job.

    Args:
        communicator_name: ``mpi`` or a name of ChainerMN's for processes;
            ``local`` for ranks that are threads; ``simulated`` for one of many ranks
            that are not there.
        mpi_comm: a communicator of mpi4py, whose ranks take part.
        kwargs: ``allreduce_grad_dtype``, in which gradients travel,
            ``batched_copy``, ``all_reduce_algorithm``; for ``simulated`` what
            :class:`renga.communicators.simulated.Machine` takes.

    Raises:
        ValueError: unknown name or option, or several nodes for ``single_node``.
        ImportError: there is no MPI.
    """
    if communicator_name not in _KINDS:
        raise ValueError(
            f'Unrecognized communicator: "{communicator_name}"; '
            f"expected one of {', '.join(_KINDS)}"
        )
    if communicator_name == "simulated":
        from renga.communicators import simulated

        return simulated.connect(**kwargs)
    comm = _connect(communicator_name, mpi_comm)
    for name, value in kwargs.items():
        comm.set_config(name, value=value)
    return comm


def _connect(name: str, mpi_comm: Any) -> Communicator:
    if name == "local":
        return local.current()
    from renga.communicators import mpi

    if name == "pure_nccl":
        from renga.communicators import nccl

        return nccl.connect(mpi_comm)
    kind = mpi.DummyCommunicator if name == "dummy" else mpi.MpiCommunicator
    comm = mpi.connect(mpi_comm, _BOARDS[name], kind)
    if name == "single_node" and comm.inter_size > 1:
        raise ValueError(
            f"single_node: expected ranks on one node, got {comm.inter_size} nodes"
        )
    return comm
