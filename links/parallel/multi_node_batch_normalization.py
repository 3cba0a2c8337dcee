"""BatchNormalization over the batches of all ranks together."""

from __future__ import annotations

from typing import Any, TypeVar

from renga._core import ops
from renga.communicators import Communicator
from renga.communicators.nccl.nccl_communicator import NcclCommunicator
from renga.core.parameter import Parameter
from renga.core.types import Array, ArrayLike, DTypeLike, Initial
from renga.core.variable import Variable
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.forms import copied_as


def multi_node_batch_normalization(
    x: ArrayLike,
    gamma: ArrayLike,
    beta: Parameter,
    comm: Communicator,
    eps: float = 2e-5,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    decay: float = 0.9,
    axis: tuple[int, ...] | None = None,
    *,
    sum_gradients: bool = False,
    first: int | None = None,
) -> Variable:
    """``batch_normalization`` by the statistics of all ranks' batches together.

    Every rank calls it and takes part in its backward pass, even where nothing of its
    own requires a gradient. One collective is called in each pass. Batches may have
    different sizes, including 0.

    Args:
        x, gamma, beta, eps, running_mean, running_var, decay, axis: as for
            batch_normalization.
        sum_gradients: whether the gradients of gamma and beta, which are replicated,
            are summed over the ranks; otherwise they are those of this rank's batch.
        first: with summed gradients, the first channel of this rank's shard of gamma,
            beta and the running statistics; None where they are not sharded.

    Shapes:
        x, result: (N, C, ...), where N may differ between ranks
        gamma, beta, running_mean, running_var: (C,), or this rank's shard
    """
    ranks = (comm.all_gather, sum_gradients, first)
    return ops.multi_node_batch_normalization(
        x, gamma, beta, ranks, eps, running_mean, running_var, decay, axis
    )


_Self = TypeVar("_Self", bound="MultiNodeBatchNormalization")
_BACKENDS = ("auto", "mpi", "nccl")


class MultiNodeBatchNormalization(BatchNormalization):
    """``BatchNormalization`` by the statistics of all ranks' batches together.

    Every rank has to call it while training, and all have the same running
    statistics. Batches may have different sizes, including 0.

    Args:
        size, decay, eps, dtype, use_gamma, use_beta, initial_gamma, initial_beta: as
            for BatchNormalization.
        comm: the communicator of the ranks.
        communication_backend: ``auto``, ``mpi``, or ``nccl`` for a communicator of
            ``pure_nccl``; the communicator decides.

    Shapes:
        x, y: (N, size, ...), where N may differ between ranks

    Raises:
        ValueError: there is no such backend, or the communicator has it not.
    """

    # Whether gradients of gamma and beta are sums over all ranks.
    _sums_gradients = False

    def __init__(
        self,
        size: int | tuple[int, ...],
        comm: Communicator,
        decay: float = 0.9,
        eps: float = 2e-5,
        dtype: DTypeLike | None = None,
        use_gamma: bool = True,
        use_beta: bool = True,
        initial_gamma: Initial | None = None,
        initial_beta: Initial | None = None,
        communication_backend: str = "auto",
    ) -> None:
        _check(communication_backend, comm)
        super().__init__(
            size, decay, eps, dtype, use_gamma, use_beta, initial_gamma, initial_beta
        )
        self.comm = comm

    @classmethod
    def from_link(
        cls: type[_Self],
        link: BatchNormalization,
        comm: Communicator,
        communication_backend: str = "auto",
    ) -> _Self:
        """A copy of a BatchNormalization for several ranks."""
        _check(communication_backend, comm)
        new = copied_as(cls, link)
        new.comm = comm
        return new

    def forward(
        self, x: ArrayLike, finetune: bool = False, **kwargs: object
    ) -> Variable:
        return super().forward(x, finetune=finetune, **kwargs)

    def _normalize(self, x: Any, gamma: Any, beta: Any, decay: float) -> Variable:
        statistics = self.eps, self.avg_mean, self.avg_var, decay, self.axis
        sums = self._sums_gradients
        return multi_node_batch_normalization(
            x, gamma, beta, self.comm, *statistics, sum_gradients=sums
        )


def _check(backend: str, comm: Communicator) -> None:
    if backend not in _BACKENDS:
        raise ValueError(
            f"MultiNodeBatchNormalization: expected communication_backend to be "
            f"one of {', '.join(_BACKENDS)}, got {backend!r}"
        )
    if backend == "nccl" and not isinstance(comm, NcclCommunicator):
        raise ValueError(
            "MultiNodeBatchNormalization: expected a communicator of pure_nccl for "
            f"communication_backend='nccl', got {type(comm).__name__}"
        )
