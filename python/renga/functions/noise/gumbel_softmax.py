"""Differentiable samples of categories."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.check import check_axis, check_floats
from renga.functions.noise.seed import draw_seed
from renga.functions.on_host import beside
from renga.utils.extents import check_real


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
