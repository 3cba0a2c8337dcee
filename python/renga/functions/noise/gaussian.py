"""Reparameterized normal random numbers."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy

from renga import _core
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays
from renga.functions.noise.seed import draw_seed
from renga.utils.argument import parse_kwargs


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
