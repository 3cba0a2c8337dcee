"""Private functions of ``chainer.distributions``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy

from renga import functions as F
from renga.core.function_node import FunctionNode
from renga.core.types import Array, Grads, Indexes
from renga.core.variable import Variable, as_array, as_variable
from renga.distributions import Bernoulli, Laplace
from renga.utils.type_check import InvalidType


def _bernoulli_log_prob(logit: Any, x: Any, binary_check: bool = False) -> Variable:
    """The logarithm of the probability of ``x``, which gets no gradient."""
    (logit,) = _NoDerivativeAtInfinity().apply((logit,))
    return Bernoulli(logit=logit, binary_check=binary_check).log_prob(as_array(x))


class _NoDerivativeAtInfinity(FunctionNode):
    """The input; gradients of infinite elements are NaN."""

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        self.retain_inputs((0,))
        return inputs

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Variable | None, ...]:
        (x,) = self.get_retained_inputs()
        nan = numpy.full(x.shape, numpy.nan, x.dtype)
        return (F.where(numpy.isinf(x.array), nan, grad_outputs[0]),)


def _standard(x: Variable) -> Laplace:
    xp = x.xp
    return Laplace(xp.zeros((), x.dtype), xp.ones((), x.dtype))


def _laplace_cdf(x: Any) -> Variable:
    """The probability of less than ``x``, for location 0 and scale 1."""
    x = as_variable(x)
    return _standard(x).cdf(x)


def _laplace_icdf(x: Any) -> Variable:
    """The inverse of ``_laplace_cdf``."""
    x = as_variable(x)
    return _standard(x).icdf(x)


def _triangular_inv(x: Any, lower: bool = True) -> Variable:
    """The inverse of a triangular matrix; the other elements get no gradient.

    Raises:
        InvalidType: ``x`` is no square matrix of floats.
    """
    x = as_variable(x)
    if x.dtype.kind != "f" or x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise InvalidType(
            f"triangular_inv: expected a square matrix of floats, got {x.shape} of "
            f"{x.dtype}"
        )
    triangle = numpy.tri(len(x), dtype=bool)
    triangle = triangle if lower else triangle.T
    return F.inv(F.where(triangle, x, numpy.zeros(x.shape, x.dtype)))


class _ModifiedXLogX(FunctionNode):
    """``x log x``; its gradient is 0 at 0, which a warning says."""

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        self.retain_inputs((0,))
        (x,) = inputs
        return (x * numpy.log(numpy.where(x == 0, numpy.ones_like(x), x)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Grads) -> Grads:
        (x,) = self.get_retained_inputs()
        vanishes = x.array == 0
        if vanishes.any():
            warnings.warn(
                "cannot calculate gradient for zero input.",
                RuntimeWarning,
                stacklevel=2,
            )
        ones, zeros = numpy.ones_like(x.array), numpy.zeros_like(x.array)
        derivative = F.log(F.where(vanishes, ones, x)) + 1
        return (grad_outputs[0] * F.where(vanishes, zeros, derivative),)


def _modified_xlogx(x: Any) -> Variable:
    """``x log x``, which is 0 at 0."""
    return _ModifiedXLogX().apply((x,))[0]
