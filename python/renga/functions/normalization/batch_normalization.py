"""Normalization by the statistics of a batch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from renga import _core
from renga._core.ops import fixed_batch_normalization as fixed_batch_normalization
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable


def batch_normalization(
    x: ArrayLike,
    gamma: ArrayLike,
    beta: ArrayLike,
    eps: float = 2e-5,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    decay: float = 0.9,
    axis: int | Sequence[int] | None = None,
) -> Variable:
    """``(x - mean) / sqrt(variance + eps) gamma + beta``, moments over the batch.

    ``running_mean`` and ``running_var`` are updated: ``running = decay running +
    (1 - decay) moment``, with the unbiased variance. Warns if the moments are those of
    one element, which make every result ``beta``.

    Shapes:
        x: (N, C, …), or any with ``axis``, the axes to average over
        gamma, beta, running_mean, running_var: (C,), or the other axes

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: Ioffe and Szegedy, ICML 2015.
    """
    y = _core.ops.batch_normalization(
        x, gamma, beta, eps, running_mean, running_var, decay, axis
    )
    # With as many elements as gamma, all axes that are averaged over have one element.
    if x.size == gamma.size > 0 and len(x) == 1:
        warnings.warn(
            "batch_normalization: got a batch of one sample, whose outputs are beta "
            "alone: is this an evaluation without renga.using_config('train', False), "
            "or the last batch of an iterator without repeat?",
            stacklevel=2,
        )
    return y
