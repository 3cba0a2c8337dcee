"""Batch normalization over the batches of all ranks together."""

from __future__ import annotations

from renga._core import ops
from renga.communicators import Communicator
from renga.core.parameter import Parameter
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable


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
