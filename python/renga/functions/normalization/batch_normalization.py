"""Normalization over a batch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy

from renga import _core
from renga._core.ops import fixed_batch_normalization as fixed_batch_normalization
from renga.core.around_call import reads_elements
from renga.core.configuration import config
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable
from renga.functions.check import array_of, check_floats, check_shape, check_written
from renga.functions.util.recomputation import remembered
from renga.utils.extents import check_real


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


@reads_elements
def batch_renormalization(
    x: ArrayLike,
    gamma: ArrayLike,
    beta: ArrayLike,
    rmax: float,
    dmax: float,
    eps: float = 2e-5,
    running_mean: Any = None,
    running_var: Any = None,
    decay: float = 0.9,
    update_statistics: bool = False,
) -> Variable:
    """Batch normalization, corrected towards the running averages.

    ``((x - mean) / s r + d) gamma + beta`` with the batch's mean and deviation s,
    ``r = s / running_s`` within [1 / rmax, rmax] and ``d = (mean - running_mean) /
    running_s`` within [-dmax, dmax]; r and d have no gradient. With
    ``update_statistics`` the averages are updated in place.

    Shapes:
        x: (N, C, …)
        gamma, beta, running_mean, running_var: (C, …), of axes 1, 2, … of ``x``

    Raises:
        TypeError: an average is missing, or an option is not a number.
        ValueError: ``rmax`` is 0 or less.
        InvalidType: shapes or dtypes do not fit.

    Source: Ioffe, Batch renormalization, 2017.
    """
    name = "batch_renormalization"
    for label, given in (("running_mean", running_mean), ("running_var", running_var)):
        array_of(name, label, given)
        if update_statistics:
            check_written(name, label, given)
    rmax, dmax = check_real(name, "rmax", rmax), check_real(name, "dmax", dmax)
    eps, decay = check_real(name, "eps", eps), check_real(name, "decay", decay)
    if not rmax > 0:
        raise ValueError(f"{name}: expected rmax above 0, got {rmax}")
    axes = check_parameters(name, x, gamma, beta)
    mean, var = running_mean, running_var
    if x.size:
        mean, var = _core.moments(x, axes)

    def corrections() -> tuple[Any, Any]:
        deviation, running = numpy.sqrt(var + eps), numpy.sqrt(running_var + eps)
        r = numpy.clip(deviation / running, 1.0 / rmax, rmax).astype(gamma.dtype)
        d = numpy.clip((mean - running_mean) / running, -dmax, dmax).astype(gamma.dtype)
        return r, d

    # If forward is recomputed, the running statistics are already updated.
    r, d = remembered(corrections)
    if update_statistics and x.size and not config.in_recomputing:
        count = x.size // max(mean.size, 1)
        unbiased = var * (count / max(count - 1.0, 1.0))
        for average, fresh in ((running_mean, mean), (running_var, unbiased)):
            average *= decay
            average += ((1 - decay) * fresh).astype(average.dtype)
    ops = _core.ops
    beta = ops.add(beta, ops.multiply(gamma, d))
    gamma = ops.multiply(gamma, r)
    gamma, beta = ops.cast(gamma, x.dtype), ops.cast(beta, x.dtype)
    return ops.batch_normalization(x, gamma, beta, eps=eps, axis=axes)


def fixed_batch_renormalization(
    x: ArrayLike,
    gamma: ArrayLike,
    beta: ArrayLike,
    mean: ArrayLike,
    var: ArrayLike,
    eps: float = 2e-5,
) -> Variable:
    """Deprecated: ``fixed_batch_normalization``, of which it warns.

    Shapes:
        x: (N, C, …)
        gamma, beta, mean, var: (C, …), of axes 1, 2, … of ``x``

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    warnings.warn(
        "fixed_batch_renormalization is deprecated: use fixed_batch_normalization",
        DeprecationWarning,
        stacklevel=2,
    )
    axes = check_parameters("fixed_batch_renormalization", x, gamma, beta)
    return _core.ops.fixed_batch_normalization(
        x, gamma, beta, mean, var, eps=eps, axis=axes
    )


def check_parameters(
    name: str, x: ArrayLike, gamma: ArrayLike, beta: ArrayLike
) -> tuple[int, ...]:
    """The axes that gamma and beta lack; InvalidType unless they fit."""
    check_floats(name, x)
    check_floats(name, gamma, beta)
    end = 1 + gamma.ndim
    fits = x.ndim >= end and gamma.shape == beta.shape == x.shape[1:end]
    check_shape(name, fits, "gamma and beta for axes 1, 2, … of x", x, gamma, beta)
    return (0, *range(end, x.ndim))
