"""Samples of normal and Gumbel distributions, through which gradients pass."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy

from renga import _core
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.check import check_arrays, check_axis, check_floats
from renga.functions.noise.seed import draw_seed
from renga.functions.on_host import beside
from renga.utils.argument import parse_kwargs
from renga.utils.extents import check_real


@overload
def gaussian(
    mean: ArrayLike,
    ln_var: ArrayLike,
    *,
    eps: ArrayLike | None = None,
    return_eps: Literal[False] = False,
) -> Variable: ...
@overload
def gaussian(
    mean: ArrayLike,
    ln_var: ArrayLike,
    *,
    eps: ArrayLike | None = None,
    return_eps: Literal[True],
) -> tuple[Variable, Array]: ...
def gaussian(
    mean: ArrayLike, ln_var: ArrayLike, **kwargs: object
) -> Variable | tuple[Variable, Array]:
    """Normal numbers ``mean + exp(ln_var / 2) eps``, differentiable in both.

    The keyword ``eps`` sets the standard normal numbers; with ``return_eps=True`` the
    result is ``(y, eps)``.

    Raises:
        InvalidType: shapes or dtypes differ.

    Source: Kingma and Welling, Auto-encoding variational Bayes, 2013.
    """
    eps, return_eps = parse_kwargs(kwargs, ("eps", None), ("return_eps", False))
    if eps is None and not return_eps:
        return _core.ops.gaussian(mean, ln_var, draw_seed(mean))
    if eps is None:
        zeros = numpy.zeros(mean.shape, mean.dtype)
        eps = _core.ops.gaussian(zeros, zeros, draw_seed(mean)).array
    check_arrays("gaussian", mean, ln_var, eps)
    y = _given(mean, ln_var, eps)
    return (y, eps) if return_eps else y


def _given(mean: Any, ln_var: Any, eps: Any) -> Variable:
    ops = _core.ops
    deviation = ops.exp(ops.multiply(ln_var, numpy.asarray(0.5, ln_var.dtype)))
    return ops.add(mean, ops.multiply(deviation, eps))


def gumbel_softmax(log_pi: ArrayLike, tau: float = 0.1, axis: int = 1) -> Variable:
    """``softmax((log_pi + g) / tau)`` with Gumbel noise g: nearly one-hot samples.

    Raises:
        TypeError: ``tau`` is not a number.
        ValueError: ``tau`` is not positive.
        InvalidType: there is no such axis, or ``log_pi`` is not of floats.

    Source: Jang et al., Categorical reparameterization with Gumbel-softmax, 2016.
    """
    tau = check_real("gumbel_softmax", "tau", tau)
    if tau <= 0:
        raise ValueError(f"gumbel_softmax: expected a positive tau, got {tau}")
    check_floats("gumbel_softmax", log_pi)
    if log_pi.ndim:  # what has no axis is one category
        axis = check_axis("gumbel_softmax", log_pi, axis)
    zeros = beside(log_pi, numpy.zeros(log_pi.shape, log_pi.dtype))
    noise = _core.ops.gumbel(zeros, draw_seed(log_pi)).array
    z = (as_variable(log_pi) + noise) * (1 / tau)
    if log_pi.ndim == 0:
        return _core.ops.squeeze(_core.ops.softmax(z[None], 0), 0)
    return _core.ops.softmax(z, axis)
