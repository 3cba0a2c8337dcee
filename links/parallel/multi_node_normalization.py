"""Batch normalization over the batches of all ranks together."""

from __future__ import annotations

from typing import Any

from renga._core import ops
from renga.variable import Variable


def multi_node_batch_normalization(
    x: Any,
    gamma: Any,
    beta: Any,
    comm: Any,
    eps: float = 2e-5,
    running_mean: Any = None,
    running_var: Any = None,
    decay: float = 0.9,
    axis: tuple[int, ...] | None = None,
    *,
    common: bool = False,
    first: int | None = None,
) -> Variable:
    """``batch_normalization`` by the statistics of all ranks' batches together.

    Every rank calls it, and comes back on the way back, even where nothing of its own
    asks for a gradient. There is one message on each way. Batches may have different
    sizes, 0 among them.

    Args:
        x, gamma, beta, eps, running_mean, running_var, decay, axis: as for
            batch_normalization.
        common: whether gamma and beta, the same on all ranks, get the gradients of
            all batches together instead of this rank's.
        first: where they are common and lie in parts, the first channel of this
            rank's, of which the running statistics are, too.

    Shapes:
        x, result: (N, C, ...) with an N of each rank's own
        gamma, beta, running_mean, running_var: (C,), or a part
    """
    ranks = (comm.all_gather, common, first)
    return ops.multi_node_batch_normalization(
        x, gamma, beta, ranks, eps, running_mean, running_var, decay, axis
    )
