"""Activations with parameters that are learnt."""

from __future__ import annotations

from renga import _core
from renga.core.around_call import overridable
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape


def spread(name: str, x: ArrayLike, parameter: ArrayLike) -> Variable:
    """``parameter`` (shaped as axes 1, 2, … of ``x``), reshaped to broadcast to ``x``.

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    check_floats(name, x, parameter)
    extents, axes = x.shape, parameter.shape
    end = 1 + len(axes)
    fits = len(extents) >= end and extents[1:end] == axes
    check_shape(name, fits, "a parameter for axes 1, 2, … of x", x, parameter)
    shape = (1, *axes, *(1,) * (len(extents) - end))
    return _core.ops.reshape(parameter, shape if extents else ())


@overridable
def prelu(x: ArrayLike, W: ArrayLike) -> Variable:
    """``x``, or ``W x`` where ``x`` is negative.

    Shapes:
        x: (N, C, …)
        W: any first ones of (C, …)

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: He et al., Delving deep into rectifiers, 2015.
    """
    return _core.ops.prelu(x, spread("prelu", x, W))


@overridable
def swish(x: ArrayLike, beta: ArrayLike) -> Variable:
    """``x sigmoid(beta x)``.

    Shapes:
        x: (N, C, …)
        beta: any first ones of (C, …)

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: Ramachandran et al., Searching for activation functions, 2017.
    """
    ops = _core.ops
    return ops.multiply(x, ops.sigmoid(ops.multiply(spread("swish", x, beta), x)))
