"""Rectifiers: clipped, concatenated, scaled, random, and the largest of pieces."""

from __future__ import annotations

from typing import Literal, overload

import numpy

from renga import _core
from renga.core.configuration import config
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays, check_axis, check_floats, check_shape
from renga.functions.noise.seed import draw_seed
from renga.functions.on_host import beside
from renga.utils.argument import parse_kwargs
from renga.utils.extents import check_count, check_real


def clipped_relu(x: ArrayLike, z: float = 20.0) -> Variable:
    """``min(max(x, 0), z)``.

    Raises:
        TypeError: ``z`` is not a number.
        InvalidType: ``x`` is not of floats.
    """
    check_floats("clipped_relu", x)
    return _core.ops.clipped_relu(x, check_real("clipped_relu", "z", z))


def relu6(x: ArrayLike) -> Variable:
    """``min(max(x, 0), 6)``.

    Raises:
        InvalidType: ``x`` is not of floats.
    """
    check_floats("clipped_relu", x)
    return _core.ops.clipped_relu(x, 6.0)


def crelu(x: ArrayLike, axis: int = 1) -> Variable:
    """``relu(x)`` and ``relu(-x)`` joined along an axis.

    Raises:
        TypeError: the axis is not an integer.
        InvalidType: there is no such axis, or ``x`` is not of floats.

    Source: Shang et al., Understanding and improving convolutional neural networks via
    concatenated rectified linear units, 2016.
    """
    check_floats("crelu", x)
    axis = check_axis("crelu", x, axis)
    ops = _core.ops
    return ops.concat([ops.relu(x), ops.relu(ops.negative(x))], axis)


def selu(
    x: ArrayLike, alpha: float = 1.6732632423543772, scale: float = 1.0507009873554805
) -> Variable:
    """``scale x``, or ``scale alpha (exp(x) - 1)`` where ``x`` is negative.

    Raises:
        TypeError: ``alpha`` or ``scale`` is not a number.
        InvalidType: ``x`` is not of floats.

    Source: Klambauer et al., Self-normalizing neural networks, 2017.
    """
    alpha = check_real("selu", "alpha", alpha)
    return _core.ops.selu(x, alpha, check_real("selu", "scale", scale))


def maxout(x: ArrayLike, pool_size: int, axis: int = 1) -> Variable:
    """The largest of every ``pool_size`` elements along an axis.

    Raises:
        ValueError: ``pool_size`` is below 1.
        InvalidType: the axis is none of ``x`` or no multiple of ``pool_size``.

    Source: Goodfellow et al., Maxout networks, 2013.
    """
    pool_size = check_count("maxout", "pool_size", pool_size)
    check_floats("maxout", x)
    axis = check_axis("maxout", x, axis)
    pools, rest = divmod(x.shape[axis], pool_size)
    check_shape("maxout", rest == 0, f"{pool_size} pieces of axis {axis}", x)
    shape = (*x.shape[:axis], pools, pool_size, *x.shape[axis + 1 :])
    return _core.ops.max(_core.ops.reshape(x, shape), axis + 1)


@overload
def rrelu(
    x: ArrayLike,
    l: float = 1.0 / 8,  # noqa: E741
    u: float = 1.0 / 3,
    *,
    r: ArrayLike | None = None,
    return_r: Literal[False] = False,
) -> Variable: ...
@overload
def rrelu(
    x: ArrayLike,
    l: float = 1.0 / 8,  # noqa: E741
    u: float = 1.0 / 3,
    *,
    r: ArrayLike | None = None,
    return_r: Literal[True],
) -> tuple[Variable, Array]: ...
def rrelu(
    x: ArrayLike,
    l: float = 1.0 / 8,  # noqa: E741
    u: float = 1.0 / 3,
    **kwargs: object,
) -> Variable | tuple[Variable, Array]:
    """``x``, or ``r x`` where ``x`` is negative, with ``r`` uniform in [l, u).

    Outside training ``r`` is ``(l + u) / 2``. The keyword ``r`` sets it;
    with ``return_r=True`` the result is ``(y, r)``.

    Raises:
        TypeError: ``l`` or ``u`` is not a number.
        ValueError: not ``0 <= l < u < 1``.
        InvalidType: ``x`` is not of floats, or ``r`` has another shape.

    Source: Xu et al., Empirical evaluation of rectified activations, 2015.
    """
    r, return_r = parse_kwargs(
        kwargs,
        ("r", None),
        ("return_r", False),
        train="rrelu: expected using_config('train', …), got train",
    )
    l, u = check_real("rrelu", "l", l), check_real("rrelu", "u", u)  # noqa: E741
    if not 0 <= l < u < 1:
        raise ValueError(f"rrelu: expected 0 <= l < u < 1, got {l} and {u}")
    check_floats("rrelu", x)
    if r is None and config.train:
        zeros = beside(x, numpy.zeros(x.shape, x.dtype))
        r = _core.ops.uniform(zeros, l, u, draw_seed(x)).array
    elif r is None and not return_r:
        return _core.ops.leaky_relu(x, (l + u) / 2)
    elif not config.train:
        r = beside(x, numpy.full(x.shape, (l + u) / 2, x.dtype))
    check_arrays("rrelu", r)
    check_shape("rrelu", r.shape == x.shape, "r of the shape of x", x, r)
    y = _core.ops.prelu(x, r)
    return (y, r) if return_r else y
