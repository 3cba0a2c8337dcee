"""Classes of ``chainermn.communicators``: they create communicators by their names."""

from __future__ import annotations

from typing import Any

from renga.communicators import create_communicator
from renga.communicators.transport.mpi import MpiCommunicator
from renga.core.link import Link
from renga.core.parameter import Parameter

#: The most elements that a message of MPI counts.
INT_MAX = 2**31 - 1


class MpiCommunicatorBase(MpiCommunicator):
    """The base of communicators of processes, those of ``mpi_comm``."""

    def __init__(self, mpi_comm: object = None) -> None:
        super().__init__(create_communicator("mpi", mpi_comm).native)


class _NamedCommunicator(MpiCommunicatorBase):
    """Instances are communicators of ``create_communicator``."""

    communicator_name: str

    def __new__(cls, mpi_comm: Any = None) -> Any:
        return create_communicator(cls.communicator_name, mpi_comm)


class NaiveCommunicator(_NamedCommunicator):
    """``create_communicator("naive", mpi_comm)``."""

    communicator_name = "naive"


class FlatCommunicator(_NamedCommunicator):
    """``create_communicator("flat", mpi_comm)``."""

    communicator_name = "flat"


class NonCudaAwareCommunicator(_NamedCommunicator):
    """``create_communicator("non_cuda_aware", mpi_comm)``."""

    communicator_name = "non_cuda_aware"


class PureNcclCommunicator(_NamedCommunicator):
    """``create_communicator("pure_nccl", mpi_comm)``."""

    communicator_name = "pure_nccl"


class DummyCommunicator(_NamedCommunicator):
    """``create_communicator("dummy", mpi_comm)``."""

    communicator_name = "dummy"


def init_ranks(mpi_comm: object) -> tuple[int, int, int, int, int]:
    """Rank, rank on the node, ranks on the node, number of the node, nodes."""
    comm = create_communicator("naive", mpi_comm)
    return (
        comm.rank,
        comm.intra_rank,
        comm.intra_size,
        comm.inter_rank,
        comm.inter_size,
    )


def chunked_bcast_obj(
    obj: object, mpi_comm: object, max_buf_len: int = 256 << 20, root: int = 0
) -> object:
    """The root's object; ``max_buf_len``, which has no effect, is in (0, INT_MAX)."""
    assert 0 < max_buf_len < INT_MAX, f"expected a size of buffers, got {max_buf_len}"
    return create_communicator("naive", mpi_comm).bcast_obj(obj, root=root)


def extract_params_set_data(model: Link) -> list[Parameter]:
    """The parameters that have arrays, in the order of their names."""
    return [
        param for _, param in sorted(model.namedparams()) if param.array is not None
    ]


def extract_params_set_grad(model: Link, zero_fill: bool) -> list[Parameter]:
    """The parameters that have gradients, or with ``zero_fill`` arrays."""
    params = extract_params_set_data(model)
    return [param for param in params if zero_fill or param.grad is not None]


def count_grad_elements(params: list[Parameter], zero_fill: bool) -> int:
    """The number of elements of the parameters' gradients."""
    return sum(p.array.size for p in params if zero_fill or p.grad is not None)
